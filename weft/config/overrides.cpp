#include "weft/config/overrides.h"

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/config/other_names.h"

namespace weft::config {
namespace {

using base::text;

std::string shown(const Written& written) {
  if (std::holds_alternative<std::monostate>(written)) return "null";
  if (const auto* word = std::get_if<std::string>(&written)) return config::shown(*word);
  const auto& words = std::get<std::vector<std::string>>(written);
  return config::shown(text("[{}]", fmt::join(words, ",")));
}

// The example an error shows: the default, or another value of the type where that says little.
std::string example(const Field& field) {
  const bool telling = field.initial != "null" && field.initial != "\"\"" && field.initial != "[]";
  return text("{}={}", field.key, telling ? field.initial : field.example);
}

void apply_override(const std::string& word, Config& config, std::vector<std::string>& complaints) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    complaints.push_back(
        text("override '{}': write key=value, as in model.num_layers=4", config::shown(word)));
    return;
  }
  std::string key = word.substr(0, equals);
  if (key == "world") key = "runtime.world_size";
  const std::string_view typed = std::string_view(word).substr(equals + 1);
  const Field* field = find_field(key);
  Written written = field ? written_from_text(*field, typed) : Written(std::string(typed));
  apply({.key = std::move(key), .value = std::move(written), .where = "override"},
        config,
        complaints);
}

}  // namespace

void apply(const Setting& setting, Config& config, std::vector<std::string>& complaints) {
  const std::string key = meant_key(setting.key);
  const Field* field = find_field(key);
  if (field == nullptr) {
    complaints.push_back(text("{}: unknown key '{}': {}",
                              setting.where,
                              config::shown(setting.key),
                              key_hint(setting.key)));
  } else if (!field->set(config, meant_value(key, setting.value))) {
    complaints.push_back(text("{}: {} = '{}' is not of type: {}; write for example {}",
                              setting.where,
                              field->key,
                              shown(setting.value),
                              field->type,
                              example(*field)));
  }
}

void apply_overrides(std::span<const std::string> words,
                     Config& config,
                     std::vector<std::string>& complaints) {
  for (const std::string& word : words) apply_override(word, config, complaints);
}

}  // namespace weft::config
