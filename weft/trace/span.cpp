#include "weft/trace/span.h"

#include <algorithm>
#include <array>

namespace weft::trace {
namespace {

constexpr std::array<std::string_view, 12> kLanesInOrder{kComputeLane,
                                                         "ep",
                                                         "dp",
                                                         "tp",
                                                         "cp",
                                                         "pp_receive_previous",
                                                         "pp_send_next",
                                                         "pp_receive_next",
                                                         "pp_send_previous",
                                                         kCopyLane,
                                                         kCopyInLane,
                                                         kHostLane};

}  // namespace

std::string_view word(SpanKind kind) {
  switch (kind) {
    case SpanKind::Node:
      return "node";
    case SpanKind::Gemm:
      return "gemm";
    case SpanKind::Attention:
      return "attention";
    case SpanKind::Memory:
      return "memory";
    case SpanKind::Copy:
      return "copy";
    case SpanKind::Communication:
      return "communication";
    case SpanKind::Host:
      return "host";
  }
  return "";
}

bool is_copy_lane(std::string_view lane) { return lane == kCopyLane || lane == kCopyInLane; }

std::string_view communication_kind(std::string_view lane) {
  if (lane == kComputeLane || lane == kHostLane || is_copy_lane(lane)) return {};
  return lane.starts_with("pp_") ? std::string_view("pp") : lane;
}

int lane_position(std::string_view lane) {
  return static_cast<int>(std::ranges::find(kLanesInOrder, lane) - kLanesInOrder.begin());
}

}  // namespace weft::trace
