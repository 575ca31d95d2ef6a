// Event files as TensorBoard reads them, by a reader that shares nothing with the writer: frames,
// checksums and messages are taken apart here, byte by byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace weft::events {

struct SeenScalar {
  std::string tag;
  float value = 0;
};

struct SeenEvent {
  double seconds = 0;
  std::int64_t step = 0;
  std::string file_version;
  std::vector<SeenScalar> scalars;
};

// std::runtime_error with what is wrong, at the first thing that is.
std::vector<SeenEvent> see_events(const std::string& bytes);

// What TensorBoard shows of a folder: every tag's values by step, of all event files. Throws also
// where a file does not begin with its version, or where a tag has a step twice.
using Curves = std::map<std::string, std::map<std::int64_t, float>>;
Curves see_curves(const std::filesystem::path& folder);

// In the order of their names.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder);

}  // namespace weft::events
