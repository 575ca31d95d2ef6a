// One key set by a recipe, a file or a word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/config/codec.h"
#include "weft/config/config.h"
#include "weft/config/field.h"

namespace weft::config {

// `where` opens the error text: "tiny.yaml:7".
struct Setting {
  std::string key;
  Written value;
  std::string where;
};

// Sets one key; a complaint is added when there is no such key or the value has another type.
void apply(const Setting& setting, Config& config, std::vector<std::string>& complaints);

// "model.num_layers = 'x' is not of type: integer; write for example model.num_layers=2".
std::string type_complaint(const Field& field, const Written& written);

}  // namespace weft::config
