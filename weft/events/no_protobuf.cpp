#include "weft/base/error.h"
#include "weft/events/event.h"

namespace weft::events {

void require_protobuf() {
  throw base::ConfigError(
      "this build has no protobuf, and logger.tensorboard_dir needs it: install it (Debian: "
      "protobuf-compiler libprotobuf-dev), configure and build again, or leave the key empty "
      "(metrics.jsonl in the run folder has every step)");
}

std::string encode(const Event&) {
  require_protobuf();
  return {};
}

std::optional<Event> decode(std::string_view) { return std::nullopt; }

std::string protobuf_version() { return {}; }

}  // namespace weft::events
