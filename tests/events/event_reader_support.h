// Event files as TensorBoard reads them, by a reader independent of the writer: it parses frames,
// checksums and messages byte by byte.
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

// Throws std::runtime_error with the first error.
std::vector<SeenEvent> see_events(const std::string& bytes);

// Curves that TensorBoard shows for a folder: each tag's values by step, over all event files. Also
// throws if a file does not begin with its version, or if a tag has a step twice.
using Curves = std::map<std::string, std::map<std::int64_t, float>>;
Curves see_curves(const std::filesystem::path& folder);

// Sorted by name.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder);

}  // namespace weft::events
