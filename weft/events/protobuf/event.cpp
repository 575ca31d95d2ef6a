#include "weft/events/event.h"

#include "weft/base/text.h"
#include "weft/events/protobuf/event.pb.h"

namespace weft::events {

std::string encode(const Event& event) {
  protobuf::Event message;
  message.set_wall_time(event.seconds);
  message.set_step(event.step);
  if (!event.file_version.empty()) message.set_file_version(event.file_version);
  for (const Scalar& scalar : event.scalars) {
    protobuf::Summary::Value& value = *message.mutable_summary()->add_value();
    value.set_tag(scalar.tag);
    value.set_simple_value(static_cast<float>(scalar.value));
  }
  return message.SerializeAsString();
}

std::optional<Event> decode(std::string_view bytes) {
  protobuf::Event message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  Event event{.seconds = message.wall_time(),
              .step = message.step(),
              .file_version = message.file_version()};
  for (const protobuf::Summary::Value& value : message.summary().value()) {
    event.scalars.push_back({.tag = value.tag(), .value = value.simple_value()});
  }
  return event;
}

std::string protobuf_version() {
  constexpr int kVersion = GOOGLE_PROTOBUF_VERSION;  // 3021012 is "3.21.12"
  return base::text("{}.{}.{}", kVersion / 1000000, kVersion / 1000 % 1000, kVersion % 1000);
}

void require_protobuf() {}

}  // namespace weft::events
