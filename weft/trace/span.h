// WHAT HAPPENED? Spans: which rank ran which node or operation, on which lane, from when to when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::trace {

// Node and Host: whole nodes (Host on the host lane). The others: operations inside a node.
enum class SpanKind { Node, Gemm, Attention, Memory, Copy, Communication, Host };
std::string_view word(SpanKind kind);

struct Span {
  std::string name;  // a node, or an operation inside it
  std::string node;  // the node it belongs to
  std::string lane;
  SpanKind kind = SpanKind::Node;
  int run = 0;  // traced execution of the graph, from 0
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  // Whole nodes only, from here on.
  int layer = -1;                    // -1: none
  int micro_batch = -1;              // -1: none
  std::int64_t bytes = 0;            // sent to other ranks
  std::int64_t rows = 0;             // sent to other ranks, or computed by the experts
  std::vector<std::string> after{};  // awaited nodes of other lanes
  // Communication: true if the order of the graph lets some compute of this rank run beside it.
  bool coverable = false;
  // Communication: name of the operation on all its ranks (a receive has its send's name), and
  // those ranks. Spans with equal run, operation and members are one operation.
  std::string operation{};
  std::vector<int> members{};

  bool operator==(const Span&) const = default;
};

inline bool is_node(const Span& span) {
  return span.kind == SpanKind::Node || span.kind == SpanKind::Host;
}

// Spans of one rank.
struct Timeline {
  int rank = 0;
  std::string label;  // "[PP00-DP01-EP02]"
  std::vector<Span> spans;
};

// Lane names that this module uses.
inline constexpr std::string_view kComputeLane = "compute";
inline constexpr std::string_view kHostLane = "host";
inline constexpr std::string_view kCopyLane = "copy", kCopyInLane = "copy_in";

// True for the two lanes between a device and its host.
bool is_copy_lane(std::string_view lane);

// Communication kind of a lane: its name, or "pp" for all pipeline lanes. Empty for lanes that move
// nothing between ranks: compute, copy, copy_in, host.
std::string_view communication_kind(std::string_view lane);

// Display position of a lane within its rank: compute, ep, dp, ..., host; unknown lanes last.
int lane_position(std::string_view lane);

}  // namespace weft::trace
