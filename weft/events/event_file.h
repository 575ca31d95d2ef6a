// Event file that TensorBoard shows while it grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "weft/base/files/line_file.h"
#include "weft/events/event.h"

namespace weft::events {

// Megatron writes many scalars twice: by step, and by consumed sequences under a tag with this
// ending.
inline constexpr std::string_view kVersusSamples = " vs samples";

class EventFile {
 public:
  // Creates a new file in an existing folder. Events after `step` in earlier Weft files there are
  // cut, so that no step appears twice. Files of other programs stay. SystemError if another run is
  // writing one.
  EventFile(const std::filesystem::path& folder, std::int64_t step);

  const std::filesystem::path& path() const { return path_; }

  // Appends with one write. SystemError if that fails; no part of the events remains then. For each
  // step pass events by step before those by samples.
  void append(std::span<const Event> events);

 private:
  std::filesystem::path path_;
  base::LineFile file_;
};

}  // namespace weft::events
