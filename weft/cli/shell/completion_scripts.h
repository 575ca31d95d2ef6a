// Shell scripts that complete `weft` commands.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "weft/cli/shell/completion_words.h"

namespace weft::cli {

inline constexpr std::array<std::string_view, 3> kShells{"bash", "zsh", "fish"};

// ConfigError unless `shell` is one of kShells.
std::string completion_script(const std::string& shell, const std::vector<CommandWords>& commands);

}  // namespace weft::cli
