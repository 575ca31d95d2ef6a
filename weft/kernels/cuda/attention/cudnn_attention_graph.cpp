#include "weft/kernels/cuda/attention/cudnn_attention_graph.h"

#include <utility>

#include "weft/base/check.h"

namespace weft::kernels::cuda {
namespace {

using tensor::Deterministic;

constexpr cudnnDataType_t kRows = CUDNN_DATA_BFLOAT16;  // rows of tokens

class AttentionGraph {
 public:
  explicit AttentionGraph(const AttentionGraphShape& shape) : shape_(shape) {}

  Graph forward() &&;
  Graph backward() &&;

 private:
  // Dimensions (batch, heads, sequence, width), in rows of tokens with one head behind another.
  struct Heads {
    Dims dims, strides;
  };
  Heads heads(std::int64_t count, std::int64_t width, std::int64_t row) const {
    return {{shape_.batch, count, shape_.sequence, width}, {shape_.sequence * row, width, row, 1}};
  }
  GraphTensor straight(Operand operand, const Heads& as) {
    return graph_.real(std::int64_t(operand), as.dims, as.strides, kRows);
  }
  GraphTensor turned(Operand operand, const Heads& as) {
    return graph_.real(std::int64_t(operand), transposed(as.dims), transposed(as.strides), kRows);
  }
  GraphTensor scalar(Operand operand) { return graph_.scalar(std::int64_t(operand)); }
  GraphTensor packed_inner(const Dims& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return graph_.inner(dims, packed(dims), type);
  }
  GraphTensor lse() {
    return graph_.real(std::int64_t(Operand::Lse),
                       line_dims(),
                       {shape_.lse_batch_stride, shape_.lse_head_stride, 1, 1},
                       CUDNN_DATA_FLOAT);
  }

  Heads query_heads() const { return heads(shape_.heads, shape_.width, shape_.rows.q); }
  Heads key_heads() const { return heads(shape_.groups, shape_.width, shape_.rows.k); }
  Heads value_heads() const { return heads(shape_.groups, shape_.value_width, shape_.rows.v); }
  Heads output_heads() const { return heads(shape_.heads, shape_.value_width, shape_.rows.o); }

  Dims score_dims() const { return {shape_.batch, shape_.heads, shape_.sequence, shape_.sequence}; }
  // One number per query.
  Dims line_dims() const { return {shape_.batch, shape_.heads, shape_.sequence, 1}; }

  // Scores, or gradients of them, transposed for a product that sums over the queries.
  GraphTensor over_queries(const GraphTensor& scores) {
    const GraphTensor turned_round =
        graph_.inner(score_dims(), transposed(packed(score_dims())), kRows);
    graph_.reshape(turned_round, scores);
    return turned_round;
  }
  // `to` = weights x, summed over the query heads of each key head.
  void key_gradient(const GraphTensor& to, const GraphTensor& weights, const GraphTensor& x) {
    if (shape_.heads == shape_.groups) return graph_.matmul(to, weights, x);
    const GraphTensor of_heads =
        packed_inner({shape_.batch, shape_.heads, shape_.sequence, x.dims[3]}, kRows);
    graph_.matmul(of_heads, weights, x);
    graph_.reduce(to, CUDNN_REDUCE_TENSOR_ADD, of_heads);
  }
  void query_gradient(const GraphTensor& ds, const GraphTensor& k_turned);

  const AttentionGraphShape& shape_;
  Graph graph_;
};

Graph AttentionGraph::forward() && {
  const GraphTensor q = straight(Operand::Q, query_heads());
  const GraphTensor k_turned = turned(Operand::K, key_heads());
  const GraphTensor v = straight(Operand::V, value_heads());
  const GraphTensor o = straight(Operand::O, output_heads());
  const GraphTensor scale = scalar(Operand::Scale), hidden = scalar(Operand::Hidden);

  const GraphTensor product = packed_inner(score_dims());
  graph_.matmul(product, q, k_turned);
  const GraphTensor scores =
      graph_.lower_triangle(graph_.binary(CUDNN_POINTWISE_MUL, product, scale), hidden);

  const GraphTensor largest = packed_inner(line_dims());
  graph_.reduce(largest, CUDNN_REDUCE_TENSOR_MAX, scores);
  const GraphTensor exponentials =
      graph_.unary(CUDNN_POINTWISE_EXP, graph_.binary(CUDNN_POINTWISE_SUB, scores, largest));
  const GraphTensor sum = packed_inner(line_dims());
  graph_.reduce(sum, CUDNN_REDUCE_TENSOR_ADD, exponentials);
  const GraphTensor logarithm = graph_.unary(CUDNN_POINTWISE_LOG, sum);
  graph_.binary_into(lse(), CUDNN_POINTWISE_ADD, largest, logarithm);

  const GraphTensor p = packed_inner(score_dims(), kRows);
  graph_.binary_into(p, CUDNN_POINTWISE_DIV, exponentials, sum);
  graph_.matmul(o, p, v);
  return std::move(graph_);
}

Graph AttentionGraph::backward() && {
  const GraphTensor q = straight(Operand::Q, query_heads());
  const GraphTensor k_turned = turned(Operand::K, key_heads());
  const GraphTensor v_turned = turned(Operand::V, value_heads());
  const GraphTensor o = straight(Operand::O, output_heads());
  const GraphTensor d_o =
      straight(Operand::GradO, heads(shape_.heads, shape_.value_width, shape_.rows.d_o));
  const GraphTensor dk =
      straight(Operand::GradK, heads(shape_.groups, shape_.width, shape_.rows.dk));
  const GraphTensor dv =
      straight(Operand::GradV, heads(shape_.groups, shape_.value_width, shape_.rows.dv));
  const GraphTensor scale = scalar(Operand::Scale), hidden = scalar(Operand::Hidden);

  const GraphTensor both =
      packed_inner({shape_.batch, shape_.heads, shape_.sequence, shape_.value_width});
  graph_.binary_into(both, CUDNN_POINTWISE_MUL, d_o, o);
  const GraphTensor sums = packed_inner(line_dims());
  graph_.reduce(sums, CUDNN_REDUCE_TENSOR_ADD, both);
  const GraphTensor delta =
      graph_.real(std::int64_t(Operand::Delta), line_dims(), packed(line_dims()), CUDNN_DATA_FLOAT);
  graph_.binary_into(delta, CUDNN_POINTWISE_MUL, sums, scalar(Operand::One));

  const GraphTensor product = packed_inner(score_dims());
  graph_.matmul(product, q, k_turned);
  const GraphTensor scores = graph_.binary(CUDNN_POINTWISE_MUL, product, scale);
  const GraphTensor shifted = graph_.binary(CUDNN_POINTWISE_SUB, scores, lse());
  const GraphTensor p = graph_.unary(CUDNN_POINTWISE_EXP, graph_.lower_triangle(shifted, hidden));
  key_gradient(dv, over_queries(p), d_o);

  const GraphTensor dp = packed_inner(score_dims());
  graph_.matmul(dp, d_o, v_turned);
  const GraphTensor centred = graph_.binary(CUDNN_POINTWISE_SUB, dp, delta);
  const GraphTensor weighted = graph_.binary(CUDNN_POINTWISE_MUL, centred, p);
  const GraphTensor ds = graph_.binary(CUDNN_POINTWISE_MUL, weighted, scale);
  key_gradient(dk, over_queries(ds), q);
  query_gradient(ds, k_turned);
  return std::move(graph_);
}

void AttentionGraph::query_gradient(const GraphTensor& ds, const GraphTensor& k_turned) {
  const GraphTensor dq =
      straight(Operand::GradQ, heads(shape_.heads, shape_.width, shape_.rows.dq));
  const GraphTensor k = graph_.inner(transposed(k_turned.dims), transposed(k_turned.strides));
  graph_.reshape(k, k_turned);
  if (shape_.deterministic == Deterministic::Yes) return graph_.matmul(dq, ds, k);
  const Dims dims = dq.dims;
  const GraphTensor sums =
      graph_.real(std::int64_t(Operand::GradQSums), dims, packed(dims), CUDNN_DATA_FLOAT);
  graph_.matmul(sums, ds, k);
  graph_.unary_into(dq, CUDNN_POINTWISE_IDENTITY, sums);
}

}  // namespace

Graph attention_graph(const AttentionGraphShape& shape) {
  AttentionGraph graph(shape);
  switch (shape.direction) {
    case Direction::Forward:
      return std::move(graph).forward();
    case Direction::Backward:
      return std::move(graph).backward();
  }
  UNREACHABLE("a direction");
}

}  // namespace weft::kernels::cuda
