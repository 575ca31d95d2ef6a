// WHAT HAPPENED? Spans: who ran what, on which lane, from when to when.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::trace {

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
};

// What one rank did.
struct Timeline {
  int rank = 0;
  std::string label;  // "[PP00-DP01-EP02]"
  std::vector<Span> spans;
};

}  // namespace weft::trace
