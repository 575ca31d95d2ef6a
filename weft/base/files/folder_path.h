// Test whether a folder can exist at a path.
#pragma once

#include <filesystem>
#include <string>

namespace weft::base {

// Obstacle to a folder at `path`, and the fix: "'a/b' is below 'a', which is a file: name another
// folder". Empty: a folder exists, or can be made as far as names tell.
std::string folder_obstacle(const std::filesystem::path& path);

}  // namespace weft::base
