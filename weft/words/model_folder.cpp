#include "weft/words/model_folder.h"

#include "weft/config/codec.h"

namespace weft::words {

namespace fs = std::filesystem;

std::optional<fs::path> model_config_file(const fs::path& recipes_folder, std::string_view word) {
  if (word.empty() || word.size() > config::kLongestText) return std::nullopt;
  const fs::path path(word);
  if (word.ends_with(".json")) return path;
  std::error_code ignored;
  const bool is_name = word.find('/') == std::string_view::npos;
  if (is_name && fs::exists(recipes_folder / (std::string(word) + ".yaml"), ignored)) {
    return std::nullopt;
  }
  const fs::path inside = path / "config.json";
  if (!fs::is_regular_file(inside, ignored)) return std::nullopt;
  return inside;
}

}  // namespace weft::words
