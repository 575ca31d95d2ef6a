// One key set by a recipe, a file or a word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/config/codec.h"
#include "weft/config/config.h"
#include "weft/config/field.h"
#include "weft/config/finding.h"
#include "weft/config/other_names.h"

namespace weft::config {

// `where` opens the error text: "tiny.yaml:7".
struct Setting {
  std::string key;
  Written value;
  std::string where;
  NameStanding standing = NameStanding::Sets;  // where `key` is another name
};

// Puts the settings of one file in an order in which a key's own name wins over its other name, and
// marks those that lose.
void order_names(std::vector<Setting>& settings);

// The findings of rule C4 on these settings.
std::vector<Finding> other_name_findings(const std::vector<Setting>& settings);

// Sets one key; a complaint is added when there is no such key or the value has another type.
void apply(const Setting& setting, Config& config, std::vector<std::string>& complaints);

// "model.num_layers = 'x' is not an integer; write for example model.num_layers=2".
std::string type_complaint(const Field& field, const Written& written);

}  // namespace weft::config
