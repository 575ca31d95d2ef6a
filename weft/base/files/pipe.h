// Pipes: a shell's <(...), and standard input.
#pragma once

#include <filesystem>
#include <string>

namespace weft::base {

// True if the path can be read only once, from beginning to end.
bool is_pipe(const std::filesystem::path& path);

// Reads to the end: waits for a writer if one is connected; without a writer the result is empty.
// Throws SystemError past `limit_bytes`.
std::string read_pipe(const std::filesystem::path& path, std::size_t limit_bytes);

}  // namespace weft::base
