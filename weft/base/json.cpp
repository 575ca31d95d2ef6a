#include "weft/base/json.h"

#include <string_view>

namespace weft::base {

std::string reason_of(const nlohmann::json::exception& error) {
  constexpr std::size_t kMost = 240;
  const std::string_view all = error.what();
  const std::size_t name = all.starts_with('[') ? all.find("] ") : std::string_view::npos;
  std::string reason;
  for (const char c : all.substr(name == std::string_view::npos ? 0 : name + 2, kMost)) {
    reason += c >= ' ' && c <= '~' ? c : '?';
  }
  return reason;
}

}  // namespace weft::base
