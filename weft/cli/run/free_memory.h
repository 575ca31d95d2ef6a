// Free memory of this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace weft::cli {

// Available memory by the system, limited by control groups (of a container, a batch system or a
// login; v1 and v2) minus their current use. nullopt: unknown. `root`: root of the system's files.
std::optional<std::int64_t> free_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace weft::cli
