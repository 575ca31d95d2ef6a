#include "weft/config/codec.h"

#include <algorithm>

namespace weft::config {
namespace {

bool is_utf8(const std::string& word) {
  try {
    base::Json(word).dump();
    return true;
  } catch (const base::Json::type_error&) {
    return false;
  }
}

}  // namespace

// Texts are file names and words: no control characters, so that they print and dump as they are.
std::optional<std::string> WordCodec<std::string>::parse(const std::string& word) {
  const bool control =
      std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (control || word.size() > kLongestText || !is_utf8(word)) return std::nullopt;
  return word;
}

}  // namespace weft::config
