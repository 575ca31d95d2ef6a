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

// `where` begins the error text: "tiny.yaml:7".
struct Setting {
  std::string key;
  Written value;
  std::string where;
  NameStanding standing = NameStanding::Sets;  // used if `key` is an alias
};

// Orders the settings of one file so that a key's own name overrides its alias, and marks the
// overruled ones.
void order_names(std::vector<Setting>& settings);

// Findings of rule C4 for these settings.
std::vector<Finding> other_name_findings(const std::vector<Setting>& settings);

// Sets one key; adds a complaint if the key is unknown or the value has another type.
void apply(const Setting& setting, Config& config, std::vector<std::string>& complaints);

// "model.num_layers = 'x' is not an integer; write for example model.num_layers=2".
std::string type_complaint(const Field& field, const Written& written);

}  // namespace weft::config
