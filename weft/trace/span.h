// WHAT HAPPENED? Spans: who ran what, on which lane, from when to when.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::trace {

// Node and Host are whole nodes (Host those of the host lane); the others are operations inside a
// node.
enum class SpanKind { Node, Gemm, Attention, Memory, Copy, Communication, Host };
std::string_view word(SpanKind kind);

struct Span {
  std::string name;  // of the node, or of an operation inside it
  std::string node;  // the node it belongs to
  std::string lane;
  SpanKind kind = SpanKind::Node;
  int run = 0;  // which traced execution of the graph, from 0
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;

  // The rest is of whole nodes only.
  int layer = -1;                    // -1: none
  int micro_batch = -1;              // -1: none
  std::int64_t bytes = 0;            // sent to other ranks
  std::int64_t rows = 0;             // sent to other ranks, or put through the experts
  std::vector<std::string> after{};  // nodes of other lanes that it waited for
  // Communication: some compute of this rank may run beside it, by the order of the graph.
  bool coverable = false;
  // Communication: the name of the operation on every rank that takes part (of a receive, its
  // send's), and those ranks. Spans that agree in both, and in the run, are one operation.
  std::string operation{};
  std::vector<int> members{};

  bool operator==(const Span&) const = default;
};

inline bool is_node(const Span& span) {
  return span.kind == SpanKind::Node || span.kind == SpanKind::Host;
}

// What one rank did.
struct Timeline {
  int rank = 0;
  std::string label;  // "[PP00-DP01-EP02]"
  std::vector<Span> spans;
};

// The names of lanes that this module looks at.
inline constexpr std::string_view kComputeLane = "compute";
inline constexpr std::string_view kHostLane = "host";
inline constexpr std::string_view kCopyLane = "copy", kCopyInLane = "copy_in";

// Whether it is one of the two lanes between a device and its host.
bool is_copy_lane(std::string_view lane);

// The kind of communication a lane carries: its name, and "pp" for all lanes of pipelining. Empty
// for lanes that move nothing between ranks: compute, copy, copy_in, host.
std::string_view communication_kind(std::string_view lane);

// Where a lane stands among the tracks of a rank: compute, ep, dp, ..., host; unknown ones last.
int lane_position(std::string_view lane);

}  // namespace weft::trace
