// Kind and size of a piece of work on a stream, for counting and drawing.
#pragma once

#include <cstdint>
#include <span>

namespace weft::tensor {

// Kind of work; `hidden_gemm` counts Gemm and Attention.
enum class WorkClass { Gemm, Attention, Memory, Copy, Communication };

// Bytes and rows that a piece of work moves, and its members; for the trace.
struct WorkSize {
  std::int64_t bytes = 0;  // sent to other ranks
  std::int64_t rows = 0;   // sent to other ranks, or computed by the experts
  // communication: world ranks that take part, including this one; outlives the stream's work
  std::span<const int> members{};
};

}  // namespace weft::tensor
