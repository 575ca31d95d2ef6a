// Event for TensorBoard: the scalars of one step.
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
  std::string file_version;  // set in the first event of a file, which has no scalars
  std::vector<Scalar> scalars;
};

// Encodes the protobuf message. Calls require_protobuf().
std::string encode(const Event& event);
// nullopt: the bytes are no such message.
std::optional<Event> decode(std::string_view bytes);

std::string protobuf_version();  // empty: built without protobuf
// ConfigError in a build without protobuf.
void require_protobuf();

}  // namespace weft::events
