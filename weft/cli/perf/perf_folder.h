// Output folder of `weft perf`, checked before any output or run.
#pragma once

#include <filesystem>
#include <optional>

namespace weft::cli {

// Parent of a fresh folder, if the user names none.
inline constexpr const char* kPerfFolder = "perf";

// SystemError if the folder cannot be made or written. ConfigError if it has a result, or contains
// the file to compare with. Leaves no new folder behind.
void require_result_folder(const std::optional<std::filesystem::path>& out,
                           const std::optional<std::filesystem::path>& against);

}  // namespace weft::cli
