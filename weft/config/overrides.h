// Overrides `a.b=c`: the command line's changes to a config.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/codec.h"
#include "weft/config/config.h"
#include "weft/config/field.h"

namespace weft::config {

// One key set by a recipe or an override. `where` opens the error text: "tiny.yaml:7".
struct Setting {
  std::string key;
  Written value;
  std::string where;
};

// Sets one key; a complaint is added when there is no such key or the value has another type.
void apply(const Setting& setting, Config& config, std::vector<std::string>& complaints);

// "model.num_layers = 'x' is not of type: integer; write for example model.num_layers=2".
std::string type_complaint(const Field& field, const Written& written);

// Applies words `a.b=c` in order, later over earlier. `world=N` is short for runtime.world_size=N,
// and so are other_names.h's short names.
void apply_overrides(std::span<const std::string> words,
                     Config& config,
                     std::vector<std::string>& complaints);

}  // namespace weft::config
