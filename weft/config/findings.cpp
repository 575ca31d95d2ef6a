#include "weft/config/findings.h"

#include <algorithm>

#include "weft/config/ranges.h"

namespace weft::config {

Findings::Findings(const Config& config) {
  for (OutOfRange& outside : numbers_out_of_range(config)) {
    unsound_.push_back(std::move(outside.key));
    all_.push_back(std::move(outside.complaint));
  }
}

bool Findings::sound(std::initializer_list<std::string_view> keys) const {
  return std::none_of(keys.begin(), keys.end(), [&](std::string_view key) {
    return std::find(unsound_.begin(), unsound_.end(), key) != unsound_.end();
  });
}

bool Findings::sound_section(std::string_view section) const {
  return std::none_of(unsound_.begin(), unsound_.end(), [&](const std::string& key) {
    return key.starts_with(section);
  });
}

}  // namespace weft::config
