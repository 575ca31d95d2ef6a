// WHAT IS WATCHED? An event as TensorBoard reads it: the scalars of one step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::events {

struct Scalar {
  std::string tag;  // UTF-8
  double value = 0;
};

struct Event {
  double seconds = 0;  // since 1970
  std::int64_t step = 0;
  std::string file_version;  // of the event that begins a file, which has no scalars
  std::vector<Scalar> scalars;
};

// Its protobuf message. Calls require_protobuf().
std::string encode(const Event& event);
// Nothing where the bytes are no such message.
std::optional<Event> decode(std::string_view bytes);

std::string protobuf_version();  // empty in a build without it
// ConfigError in a build without it.
void require_protobuf();

}  // namespace weft::events
