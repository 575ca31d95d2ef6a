// The memory of a priced run: what its ranks keep, by component.
#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/memory.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/price.h"
#include "weft/plan/workload.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using config::ModelConfig;
using config::RecomputeModule;

constexpr double kKeptElement = 2;

bool remakes(const ModelConfig& model, RecomputeModule module) {
  if (model.recompute_granularity != config::RecomputeGranularity::Selective) return false;
  if (!model.recompute_modules) return module == RecomputeModule::CoreAttn;
  return std::ranges::find(*model.recompute_modules, module) != model.recompute_modules->end();
}

// What a layer of one micro-batch keeps for its backward: the inputs of its products (in the
// products' own format) and of what is not linear.
class KeptBytes {
 public:
  KeptBytes(const Config& config, const Workload& work)
      : model_(config.model), work_(work), product_(work.number == Number::Bf16 ? 2 : 1) {}

  double of_layer(std::int64_t layer) const {
    const double stream = work_.own_tokens * number(model_.hidden_size);
    const bool drops_norms = remakes(model_, RecomputeModule::Layernorm);
    double bytes = 2 * stream * kKeptElement;            // two residual streams
    bytes += 2 * stream * (drops_norms ? 0 : product_);  // and their norms
    bytes += attention(layer);
    if (!model_.is_moe_layer(layer)) {
      const bool drops = remakes(model_, RecomputeModule::Mlp);
      return bytes + (drops ? 0 : feed_forward(work_.tokens, number(model_.dense_width())));
    }
    const double shared = number(derive::shared_expert_width(model_));
    if (shared > 0 && !remakes(model_, RecomputeModule::SharedExperts)) {
      bytes += feed_forward(work_.tokens, shared);
    }
    if (remakes(model_, RecomputeModule::Moe)) return bytes;
    return bytes + experts();
  }

 private:
  double attention(std::int64_t layer) const {
    const double t = work_.tokens / work_.tp;
    switch (derive::attention_of(model_, layer)) {
      case derive::AttentionKind::Grouped: {
        const double q = number(model_.query_width()), kv = number(model_.key_width());
        return t * (q + 2 * kv + q) * kKeptElement + t * q * (product_ == 1 ? 1 : 0);
      }
      case derive::AttentionKind::Latent: {
        const double heads = number(model_.num_attention_heads);
        const double wide = number(model_.latent_head_dim()), value = number(model_.v_head_dim);
        const double latents =
            work_.tokens * number(model_.q_lora_rank.value_or(0) + model_.kv_lora_rank +
                                  model_.qk_pos_emb_head_dim);
        const double expanded = remakes(model_, RecomputeModule::MlaUpProj)
                                    ? 0
                                    : t * heads * (2 * wide + value) * kKeptElement;
        return latents * 2 * kKeptElement + expanded + t * heads * value * kKeptElement;
      }
      case derive::AttentionKind::DeltaNet: {
        const double key = number(model_.linear_num_key_heads * model_.linear_key_head_dim);
        const double value = number(model_.linear_num_value_heads * model_.linear_value_head_dim);
        return t * (4 * key + 5 * value) * kKeptElement;
      }
    }
    return 0;
  }

  double feed_forward(double tokens, double width) const {
    return tokens * width / work_.tp * (2 * kKeptElement + product_);
  }

  double experts() const {
    const double width = number(model_.expert_shard_width()), h = number(model_.hidden_size);
    const double activated = remakes(model_, RecomputeModule::MoeAct) ? 0 : product_;
    const double budget = model_.moe_expert_rank_capacity_factor.value_or(1);
    const double room = model_.moe_paged_stash ? 1 : budget;
    return room * work_.rows * (h * product_ + width * (2 * kKeptElement + activated)) +
           work_.own_tokens * number(model_.experts()) * 4;
  }

  const ModelConfig& model_;
  const Workload& work_;
  double product_;  // bytes of a value that a weight gradient reads
};

// Turns of a pipeline rank whose activations are alive at once, in micro-batches of the whole rank.
double in_flight(const Config& config, int pp_rank, double micro_batches) {
  const double pp = number(config.model.pipeline_model_parallel_size);
  const double vpp = number(derive::virtual_stages(config.model));
  const bool merged = config.comm_overlap.overlap_moe_expert_parallel_comm;
  double turns = pp - pp_rank;
  if (vpp > 1) turns = 2 * (pp - pp_rank - 1) + (vpp - 1) * pp + 1;
  if (merged) turns += vpp > 1 || pp > 1 ? 1 : 0.1;
  return std::min(turns, micro_batches * vpp) / vpp;
}

struct RankKept {
  double layers = 0, logits = 0;
};

}  // namespace

MemoryPrice price_memory(const Config& config, const Hardware& hardware, const Routing& routing) {
  const ModelConfig& model = config.model;
  const Workload work = workload_of(config, largest_imbalance(routing, model));
  const KeptBytes kept(config, work);
  const grid::Layout layout = derive::layout_of(config);
  const double micro_batches = number(std::max<std::int64_t>(
      1,
      derive::micro_batches(config.train, layout.world / (layout.tp * layout.cp * layout.pp))));
  const double stream = work.own_tokens * number(model.hidden_size) * kKeptElement;
  std::vector<RankKept> ranks(base::at(layout.pp));
  const std::vector<derive::Stage> stages = derive::stages_of(model).all;
  const derive::Pipeline pipeline = derive::pipeline_of(config);
  const bool full = model.recompute_granularity == config::RecomputeGranularity::Full;
  const bool block = model.recompute_method == config::RecomputeMethod::Block;
  double largest_layer = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const derive::Stage& stage = stages[s];
    RankKept& rank = ranks[base::at(pipeline.rank_of(static_cast<int>(s)))];
    for (int i = 0; i < stage.layers + stage.mtp_layers; ++i) {
      const std::int64_t layer =
          std::min<std::int64_t>(stage.first_layer + i, model.num_layers - 1);
      const double all = kept.of_layer(layer);
      largest_layer = std::max(largest_layer, all);
      const bool again = full && (!block || i < model.recompute_num_layers.value_or(1));
      rank.layers += again ? stream : all;
    }
    const double heads =
        (stage.loss ? 1.0 : 0.0) + (stage.loss ? 1.0 : 0.0) * number(stage.mtp_layers);
    rank.logits += heads * work.tokens * number(model.vocab_size) / work.tp * (kKeptElement + 4);
  }
  const std::vector<derive::RankParameters> parameters = derive::rank_parameters(config);
  MemoryPrice most;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const derive::StateBytes state = derive::state_bytes(config, parameters[r]);
    MemoryPrice price{
        .pp_rank = static_cast<int>(r),
        .weights = number(state.weights),
        .gradients = number(state.gradients),
        .optimizer = number(state.optimizer),
        .activations = ranks[r].layers * in_flight(config, static_cast<int>(r), micro_batches),
        .logits = ranks[r].logits,
        .buffers = 0,
        .reserved = hardware.reserved_gb * 1e9,
        .capacity = hardware.memory_gb * 1e9};
    if (full) price.activations += largest_layer;
    // Rows as they leave and as they arrive, and the gradients of both.
    price.buffers = 4 * work.rows * number(model.hidden_size) * kKeptElement + 6 * stream;
    if (price.total() > most.total()) most = price;
  }
  return most;
}

}  // namespace weft::plan
