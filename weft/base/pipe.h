// Pipes: what a shell's <(...) hands a program, and standard input.
#pragma once

#include <filesystem>
#include <string>

namespace weft::base {

// Whether the path is of something that is read once and from its beginning to its end.
bool is_pipe(const std::filesystem::path& path);

// What it gives until its end: waits for a writer that is there, and is empty where there is none.
// SystemError past `limit_bytes`.
std::string read_pipe(const std::filesystem::path& path, std::size_t limit_bytes);

}  // namespace weft::base
