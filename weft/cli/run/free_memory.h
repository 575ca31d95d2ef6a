// How much of the machine's memory a process may still take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace weft::cli {

// What the system says is available, within the limits that control groups set (of a container, a
// batch system or a login; both versions of them), less what their processes use. Nothing where
// none of that is known. `root` is where the system's own files are.
std::optional<std::int64_t> free_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace weft::cli
