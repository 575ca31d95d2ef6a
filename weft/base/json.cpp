#include "weft/base/json.h"

namespace weft::base {

Json parse_json(std::string_view text, const Json::parser_callback_t& watch) {
  return Json::parse(text, watch);
}

SortedJson parse_sorted_json(std::string_view text, const SortedJson::parser_callback_t& watch) {
  return SortedJson::parse(text, watch);
}

Json try_parse_json(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

SortedJson try_parse_sorted_json(std::string_view text) {
  return SortedJson::parse(text, nullptr, /*allow_exceptions=*/false);
}

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
