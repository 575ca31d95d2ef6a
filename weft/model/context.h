// Context of every piece function: stream, pool, and model.
#pragma once

#include <optional>

#include "weft/config/model_config.h"
#include "weft/kernels/kernels.h"
#include "weft/model/parameters.h"
#include "weft/tensor/pool.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/tensor.h"

namespace weft::model {

using tensor::DType;
using tensor::Stream;
using tensor::Tag;

// Inputs of random numbers, equal under every layout and in every order.
struct Randomness {
  std::uint64_t layer_key = 0;     // from (seed, layer)
  std::int64_t step = 0;           // step of the run
  kernels::RowTokens tokens = {};  // token of each row of the micro-batch
};

// Tokens of a shared micro-batch on this rank. A context-parallel rank has a part of every
// sequence. Outside attention, each of its tensor-parallel ranks has a run of these rows.
struct TokenShare {
  std::int64_t ranks = 1;            // tp x cp: ranks that share the micro-batch
  std::int64_t tp = 1, tp_rank = 0;  // position of the run
};

// Rows of one step of a product or an exchange, if tensor-parallel ranks exchange tokens rank by
// rank (product_exchange.h).
struct ProductStep {
  std::int64_t ranks = 1, rows = 0;  // ranks in the exchange; rows per rank
  // rank: whose rows. mirror: the rank for which this rank is `rank`
  std::int64_t rank = 0, mirror = 0;
  bool is_own = false;               // true: this rank's own tokens
  bool opens = true, closes = true;  // true: first, last step of its part to run

  std::int64_t all() const { return ranks * rows; }
  tensor::Range of(std::int64_t of_rank) const { return {of_rank * rows, rows}; }
};

struct Context {
  Stream& stream;
  Pool& pool;
  const config::ModelConfig& config;
  std::int64_t sequence = 0;  // tokens of every sequence on this rank
  Tensor rotary_SD;           // cosines and sines of their positions
  // Factor on the gradient of a micro-batch's mean loss: 1 / (micro-batches * dp). Sums over
  // micro-batches and data-parallel ranks then give the mean.
  float loss_scale = 1;
  kernels::OtherIds other_ids = {};  // vocabulary of the other tensor-parallel ranks
  // Memory of the piece's output, for a piece of this rank or for another pipeline stage.
  tensor::Reuse output_memory = tensor::Reuse::InOrder;
  // Assign for the first weight gradients of a step, which overwrite the previous step's; then
  // Accumulate.
  kernels::Write gradient_write = kernels::Write::Accumulate;

  Randomness random = {};
  TokenShare share = {};
  std::optional<ProductStep> step = std::nullopt;  // nullopt: all rows at once
  // Number of equal parts in which a product of all rows is computed. A recomputed product has as
  // many parts as its forward had steps: a GPU library may round differently for another number of
  // rows.
  std::int64_t product_parts = 1;
  // Tokens whose logits exist at a time; only their gradient is kept. 0: all logits, kept.
  std::int64_t logits_chunk = 0;
  // For sums of the same rows from P ranks: row index of each part.
  Tensor part_rows_TP = {};

  bool opens() const { return !step || step->opens; }
  bool closes() const { return !step || step->closes; }
  // Rows of the current step.
  Tensor of_step(const Tensor& all) const {
    return step ? all.rows(step->of(step->rank).begin, step->rows) : all;
  }

  DType dtype() const { return dtype_of(config.params_dtype); }
  Tensor activation(DType format,
                    Shape shape,
                    tensor::Reuse memory = tensor::Reuse::InOrder) const {
    return {pool, format, shape, Tag::Activations, memory};
  }
  Tensor activation(Shape shape) const { return activation(dtype(), shape); }
  Tensor output(Shape shape) const { return activation(dtype(), shape, output_memory); }
  Tensor activation_fp32(Shape shape) const { return activation(DType::F32, shape); }
  Tensor integers(Shape shape) const { return {pool, DType::I32, shape, Tag::Activations}; }
  Tensor wire(Shape shape) const { return {pool, dtype(), shape, Tag::Communication}; }
  Tensor wire_fp32(Shape shape) const { return {pool, DType::F32, shape, Tag::Communication}; }
};

}  // namespace weft::model
