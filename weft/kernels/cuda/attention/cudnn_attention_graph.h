// Causal attention as cuDNN graphs.
//
// The library recognises attention by the shape of the graph, operation by operation, and runs all
// of it as one kernel. Another graph of the same sums may be slow or not run at all. Tensors are
// (batch, heads, sequence, width) with the strides of our rows of tokens. Keys are given
// transposed, and values too in the backward.
//
// The backward has two shapes. If the last product gives the gradient of the queries, the library
// keeps the gradients of all scores (2 bytes each), and its bits are the same in every run. Through
// fp32 sums in memory it adds in an order that varies, and keeps no scores.
#pragma once

#include <compare>
#include <cstdint>

#include "weft/kernels/cuda/attention/cudnn_graph.h"
#include "weft/tensor/device.h"

namespace weft::kernels::cuda {

// Numbers of the tensors and scalars that a graph is run with.
enum class Operand : std::int64_t {
  Q = 1,
  K,
  V,
  O,
  Lse,
  GradO,
  GradQ,
  GradK,
  GradV,
  Delta,      // sums of do * o, fp32 (batch, heads, sequence) without gaps; written and read
  GradQSums,  // fp32 (batch, heads, sequence, width) without gaps; only if bits may vary
  Scale,      // factor of the scores
  One,        // 1
  Hidden,     // minus infinity
};

// Elements from one token's row to the next.
struct RowStrides {
  std::int64_t q = 0, k = 0, v = 0, o = 0;
  std::int64_t dq = 0, dk = 0, dv = 0, d_o = 0;  // 0: forward
  auto operator<=>(const RowStrides&) const = default;
};

enum class Direction { Forward, Backward };

// Everything that a graph, and the choice of its engine, depends on.
struct AttentionGraphShape {
  Direction direction = Direction::Forward;
  tensor::Deterministic deterministic = tensor::Deterministic::Yes;
  std::int64_t batch = 0, heads = 0, groups = 0, sequence = 0;
  std::int64_t width = 0, value_width = 0;  // query or key head; value head
  RowStrides rows;
  std::int64_t lse_batch_stride = 0, lse_head_stride = 0;
  auto operator<=>(const AttentionGraphShape&) const = default;
};

Graph attention_graph(const AttentionGraphShape& shape);

}  // namespace weft::kernels::cuda
