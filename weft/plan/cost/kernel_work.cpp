#include "weft/plan/cost/kernel_work.h"

#include <optional>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/blocks.h"
#include "weft/derive/context_sharing.h"
#include "weft/plan/cost/kernel_list.h"

namespace weft::plan {
namespace {

using base::number;
using block::Block;
using block::Elementwise;
using block::Over;
using block::Pass;
using block::Product;
using block::Shared;
using config::ModelConfig;
using schedule::Direction;
using schedule::Part;
using schedule::Piece;

// How the program that is priced carries out an elementwise operation: values read and written for
// each channel, and launches each way.
struct PassCost {
  double forward = 0, backward = 0, launches = 1;
  // Part whose kernel does it, where that is another than the block's: calibrations are of programs
  // that norm, turn and add there.
  std::optional<Part> part = std::nullopt;
};

// Experts' rows are weighted by the activation too: one kernel each way. A clamped gated quick GELU
// (GPT-OSS) has unfused steps before: each half of FC1's output is read and written by its clamp,
// and both by their concatenation. Backward, the halves are split, masked and joined into one
// gradient.
PassCost activation_cost(const ModelConfig& model, Over over) {
  if (over != Over::Rows) return {3, 5, 1, Part::Act};
  return model.activation_func_clamp_value ? PassCost{11, 18, 7} : PassCost{3, 6, 3};
}

PassCost cost_of(const Block& block, const Pass& pass, const KernelList& list) {
  switch (pass.what) {
    case Elementwise::Norm:
      return {2, 4};
    case Elementwise::HeadNorm:
      return {2, 3, 2, Part::Turn};
    case Elementwise::LatentNorm:
      return {2, 3, 1, Part::Norm};
    case Elementwise::StreamsNorm:
      return {10, 14, 6};
    case Elementwise::Rotation:
      return {2, 2, 2, Part::Turn};
    case Elementwise::LatentRotation:
      return {3, 4, 4, Part::Heads};
    case Elementwise::Scan:
      return {14, 26, 12};
    case Elementwise::OutputGate:
      return {3, 5, 2};
    case Elementwise::Residual:
      return {3, 1, 1, block.piece == Piece::Attention ? std::optional(Part::Proj) : std::nullopt};
    case Elementwise::Activation:
      return activation_cost(list.model, pass.over);
    case Elementwise::RouterInput:
      return {5, 6, 3, Part::Gate};
    case Elementwise::Choice:
      return {12, 8, 2};
    case Elementwise::Lookup:
      return {2, 6, 4};
    case Elementwise::Loss:
      return {list.work.program.loss_forward, list.work.program.loss_backward, 8};
  }
  UNREACHABLE("elementwise operation {}", static_cast<int>(pass.what));
}

// Further launches of a layer's piece with a negligible kernel each.
struct SmallKernels {
  Part part = Part::None;
  int forward = 0, backward = 0;
};

SmallKernels small_kernels(const Block& block, const KernelList& list) {
  if (block.piece == Piece::Attention) return {Part::None, 4, 8};
  if (block.piece == Piece::Mlp || block.piece == Piece::Shared) return {Part::None, 2, 4};
  if (block.piece == Piece::Route) return {Part::Choose, 12, 12};
  if (block.piece == Piece::Experts && !list.work.fuses_experts) return {Part::Act, 4, 6};
  return {};
}

double tokens_of(const Workload& work, Over over) {
  switch (over) {
    case Over::OwnTokens:
      return work.own_tokens;
    case Over::GroupTokens:
      return work.tokens;
    case Over::Rows:
      return work.rows;
  }
  UNREACHABLE("operation over {}", static_cast<int>(over));
}

double ranks_that_share(const Workload& work, Over over) {
  return over == Over::Rows ? work.etp : work.tp;
}

// Products behind a norm read what it casts; others cast their operand themselves.
void add_product(KernelList& list, const Block& block, const Product& product) {
  const Workload& work = list.work;
  const double share = ranks_that_share(work, product.over);
  const bool is_grouped = product.over == Over::Rows;
  const bool is_head = product.part == Part::Logits;
  const bool is_cast_before = is_grouped ? work.fuses_experts : product.reads_norm;
  const double groups = is_grouped ? work.local_experts : 1;
  list.product(block.piece,
               product.part,
               {.m = tokens_of(work, product.over) / groups,
                .n = product.out / (product.shared == Shared::Out ? share : 1),
                .k = product.in / (product.shared == Shared::In ? share : 1),
                .groups = groups},
               is_head ? work.wide : work.number,
               is_cast_before ? Cast::Fused : Cast::Alone);
}

void add_pass(KernelList& list, const Block& block, const Pass& pass) {
  const bool is_fused = pass.over == Over::Rows && list.work.fuses_experts;
  if (is_fused) return;
  const PassCost cost = cost_of(block, pass, list);
  const double share = pass.is_shared ? ranks_that_share(list.work, pass.over) : 1;
  const double values = tokens_of(list.work, pass.over) * pass.channels / share;
  list.memory(block.piece,
              cost.part.value_or(pass.part),
              cost.forward * values,
              cost.backward * values,
              cost.launches);
}

// Adds the ring of context-parallel ranks: attention to the keys of one rank at a time. Each output
// is added in fp32 to the earlier ones; backward, so are the gradients of queries and of returning
// keys.
void add_steps_of_ring(KernelList& list, const block::AttentionCore& core, double steps) {
  // A value is read, and an fp32 sum read and written; in values, as KernelList::memory counts.
  const double values_of_sum = (list.work.element + 4 + 4) / list.work.element;
  const double each = (steps - 1) * list.work.tokens / list.work.tp * values_of_sum;
  list.memory(Piece::Attention,
              core.part,
              each * core.values,
              each * (core.scores + core.keys),
              2 * (steps - 1));
}

// Slowdown of narrow heads. Attention rates belong to heads of 128 channels. Each score costs an
// exponential besides its products, equivalent to kExponential channels. Fitted to published rates
// of heads of 64 (about three quarters of those of 128).
double slower_by_width(double channels) {
  constexpr double kUsual = 128, kExponential = 64;
  if (channels >= kUsual) return 1;
  return (channels + kExponential) / channels * kUsual / (kUsual + kExponential);
}

// Adds scores and values over the visible tokens of a query, two operations each. The backward has
// five products instead of two.
void add_core(KernelList& list,
              const block::AttentionCore& core,
              const block::AttentionSharing& sharing) {
  const double flops = slower_by_width(core.scores / core.heads) * 2 * list.work.tokens *
                       core.seen * (core.scores + core.values) / list.work.tp;
  const bool is_ring = sharing.keys == block::KeyExchange::Ring;
  const std::int64_t steps = is_ring ? sharing.key_ranks : 1;
  Kernel kernel{.piece = Piece::Attention,
                .part = core.part,
                .kind = KernelKind::Attention,
                .number = list.work.wide,
                .flops = flops / number(steps),
                .launches = 3};
  Kernel backward = kernel;
  backward.direction = Direction::D;
  backward.flops = 2.5 * kernel.flops;
  backward.launches = 4;
  for (std::int64_t step = 0; step < steps; ++step) {
    list.add(kernel);
    list.add(backward);
  }
  if (steps > 1) add_steps_of_ring(list, core, number(steps));
}

void add_block(KernelList& list, const Block& block, const block::AttentionSharing& sharing) {
  for (const Pass& pass : block.passes) add_pass(list, block, pass);
  for (const Product& product : block.products) {
    // The router's product is no more than reading its input.
    if (!product.is_router) add_product(list, block, product);
  }
  if (block.core) add_core(list, *block.core, sharing);
}

// Reorders rows for the wire and back. Flex dispatchers also reorder them by expert, in which
// alltoall receives them directly.
void add_rows(KernelList& list) {
  const double h = number(list.model.hidden_size);
  const double rows = list.work.rows * h, stream = list.work.own_tokens * h;
  if (list.work.is_flex) {
    const double more = list.work.program.flex_passes * rows;
    list.memory(Piece::Permute, Part::None, 2 * rows + more / 2, 2 * rows + more / 2, 3);
    list.memory(Piece::Merge,
                Part::None,
                2 * rows + 3 * stream + more / 2,
                2 * rows + stream + more / 2,
                3);
    list.small(Piece::Counts, Part::None, 8, 0);
    list.small(Piece::Dispatch, Part::None, 4, 4);
    list.small(Piece::Combine, Part::None, 3, 3);
    return;
  }
  list.memory(Piece::Permute, Part::None, stream + rows, stream + rows, 5);
  list.memory(Piece::Merge, Part::None, rows + 4 * stream, 2 * rows + stream, 5);
  list.small(Piece::Counts, Part::None, 14, 0);
  list.small(Piece::Dispatch, Part::None, 6, 6);
  list.small(Piece::Combine, Part::None, 4, 4);
}

// Adds FC2's bias by expert: its rows times fp32 weights, concatenated and cast, each a call per
// local expert. The backward sums for the bias and the weights. In a fused feed-forward FC2's
// gradient is written once more and read for the sums.
void add_expert_biases(KernelList& list, double rows, double h, double width) {
  if (list.work.fuses_experts) {
    list.memory(Piece::Experts, Part::Fc2, rows * h, rows * (2 * h + 2 * width), 2);
    return;
  }
  constexpr double kForwardCalls = 3, kBackwardCalls = 7;
  const double calls = kGroupLaunch * list.work.local_experts;
  list.memory(Piece::Experts, Part::Fc2, 14 * rows * h, 21 * rows * h + 2 * rows * width, 0);
  list.launch(Piece::Experts, Part::Fc2, kForwardCalls * calls, kBackwardCalls * calls);
}

std::vector<Kernel> kernels_of(const config::Config& config,
                               const Workload& work,
                               const Block& block) {
  KernelList list(config.model, work);
  add_block(list, block, {});
  return list.take();
}

}  // namespace

std::vector<Kernel> layer_kernels(const config::Config& config,
                                  const Workload& work,
                                  std::int64_t layer) {
  const ModelConfig& model = config.model;
  const block::AttentionSharing sharing = derive::attention_sharing(model, layer);
  KernelList list(model, work);
  for (const Block& block : derive::layer_blocks(model, layer, sharing)) {
    add_block(list, block, sharing);
    const SmallKernels small = small_kernels(block, list);
    list.small(block.piece, small.part, small.forward, small.backward);
  }
  if (!model.is_moe_layer(layer)) return list.take();
  add_rows(list);
  if (model.add_bias_linear) {
    add_expert_biases(list,
                      work.rows,
                      number(model.hidden_size),
                      number(model.expert_shard_width()));
  }
  return list.take();
}

std::vector<Kernel> embed_kernels(const config::Config& config, const Workload& work) {
  return kernels_of(config, work, derive::embedding_block(config.model));
}

std::vector<Kernel> head_kernels(const config::Config& config, const Workload& work) {
  return kernels_of(config, work, derive::head_block(config.model));
}

std::vector<Kernel> mtp_kernels(const config::Config& config, const Workload& work) {
  return kernels_of(config, work, derive::token_ahead_block(config.model));
}

}  // namespace weft::plan
