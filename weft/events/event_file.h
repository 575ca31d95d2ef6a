// A file of events that TensorBoard shows while it grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "weft/base/line_file.h"
#include "weft/events/event.h"

namespace weft::events {

// Megatron shows many scalars twice: by the step, and under a tag with this ending by the sequences
// consumed.
inline constexpr std::string_view kVersusSamples = " vs samples";

class EventFile {
 public:
  // A new file in `folder`, which is there. What earlier files of Weft in it say of steps after
  // `step` is cut off, so that no step is there twice; files of other programs stay as they are.
  // SystemError where another run is writing one.
  EventFile(const std::filesystem::path& folder, std::int64_t step);

  const std::filesystem::path& path() const { return path_; }

  // With one write. SystemError where they cannot be written whole; nothing of them is left then.
  // Events by the step come before those of the same step by samples.
  void append(std::span<const Event> events);

 private:
  std::filesystem::path path_;
  base::LineFile file_;
};

}  // namespace weft::events
