// Where `weft perf` puts its results: asked before anything is printed or run.
#pragma once

#include <filesystem>
#include <optional>

namespace weft::cli {

inline constexpr const char* kPerfFolder = "perf";  // gets a fresh folder where none is named

// SystemError where the folder cannot be made or written into; ConfigError where it has a result
// already, and where it holds the file to compare with. Leaves no folder behind that was not there.
void require_result_folder(const std::optional<std::filesystem::path>& out,
                           const std::optional<std::filesystem::path>& against);

}  // namespace weft::cli
