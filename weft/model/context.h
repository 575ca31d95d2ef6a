// What every piece function gets besides its state: where to enqueue, where to allocate, what the
// model is.
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

// What random numbers are functions of: the same under every layout and in every order.
struct Randomness {
  std::uint64_t layer_key = 0;     // of (seed, layer)
  std::int64_t step = 0;           // of the run
  kernels::RowTokens tokens = {};  // which of its step the rows of the micro-batch are
};

// Which tokens of a micro-batch a rank has where it shares them: outside of attention a run of the
// rows of its context-parallel rank, which has a part of every sequence.
struct TokenShare {
  std::int64_t ranks = 1;            // tp x cp: all that have tokens of the micro-batch
  std::int64_t tp = 1, tp_rank = 0;  // of the run
};

// The rows that one step of a product is about, where tensor-parallel ranks exchange tokens one
// rank's after the other's (product_exchange.h), or one step of such an exchange.
struct ProductStep {
  std::int64_t ranks = 1, rows = 0;   // of each rank as many
  std::int64_t rank = 0, mirror = 0;  // whose rows, and the rank to which this one is what that is
  bool is_own = false;                // the rank's own tokens
  bool opens = true, closes = true;   // the first and the last of its part to run

  std::int64_t all() const { return ranks * rows; }
  tensor::Range of(std::int64_t of_rank) const { return {of_rank * rows, rows}; }
};

struct Context {
  Stream& stream;
  Pool& pool;
  const config::ModelConfig& config;
  std::int64_t sequence = 0;  // tokens that the rank has of every sequence
  Tensor rotary_SD;           // cosines and sines of their positions
  // What a gradient of a micro-batch's mean loss is multiplied with, so that sums over
  // micro-batches and data-parallel ranks give the mean: 1 / (micro-batches * dp).
  float loss_scale = 1;
  kernels::OtherIds other_ids = {};  // of the vocabulary, on other tensor-parallel ranks
  // Memory of what the piece hands on: to a piece of this rank, or to another pipeline stage.
  tensor::Reuse output_memory = tensor::Reuse::InOrder;
  // What weight gradients do with what is in their buffers: the first of a step assign, and leave
  // nothing of the step before.
  kernels::Write gradient_write = kernels::Write::Accumulate;

  Randomness random = {};
  TokenShare share = {};
  std::optional<ProductStep> step = std::nullopt;  // none: all rows at once
  // Parts of equal rows in which a product of all rows is made: as many as the steps it had before,
  // where it is made again. A GPU's library may round otherwise for another number of rows.
  std::int64_t product_parts = 1;
  // Tokens whose logits exist at a time, and of which the gradient alone is kept; 0: all, kept.
  std::int64_t logits_chunk = 0;
  // For sums of what P ranks made of the same rows: which rows of all they are.
  Tensor part_rows_TP = {};

  bool opens() const { return !step || step->opens; }
  bool closes() const { return !step || step->closes; }
  // The rows of the step.
  Tensor of_step(const Tensor& all) const {
    return step ? all.rows(step->of(step->rank).begin, step->rows) : all;
  }

  DType dtype() const { return dtype_of(config.params_dtype); }
  Tensor activation(Shape shape) const { return {pool, dtype(), shape, Tag::Activations}; }
  Tensor output(Shape shape) const {
    return {pool, dtype(), shape, Tag::Activations, output_memory};
  }
  Tensor activation_fp32(Shape shape) const { return {pool, DType::F32, shape, Tag::Activations}; }
  Tensor integers(Shape shape) const { return {pool, DType::I32, shape, Tag::Activations}; }
  Tensor wire(Shape shape) const { return {pool, dtype(), shape, Tag::Communication}; }
  Tensor wire_fp32(Shape shape) const { return {pool, DType::F32, shape, Tag::Communication}; }
};

}  // namespace weft::model
