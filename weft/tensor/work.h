// What a piece of work on a stream is, for who counts and draws it.
#pragma once

#include <cstdint>
#include <span>

namespace weft::tensor {

// What kind of work something is; `hidden_gemm` counts Gemm and Attention.
enum class WorkClass { Gemm, Attention, Memory, Copy, Communication };

// How much a piece of work moves and who takes part in it; for the trace.
struct WorkSize {
  std::int64_t bytes = 0;          // sent to other ranks
  std::int64_t rows = 0;           // sent to other ranks, or put through the experts
  std::span<const int> members{};  // communication: the world ranks that take part, this one
                                   // included; outlives the stream's work
};

}  // namespace weft::tensor
