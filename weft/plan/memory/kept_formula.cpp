#include "weft/plan/memory/kept_formula.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/layer_kind.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using config::ModelConfig;
using config::RecomputeModule;

bool recomputes(const ModelConfig& model, RecomputeModule module) {
  if (model.recompute_granularity != config::RecomputeGranularity::Selective) return false;
  if (!model.recompute_modules) return module == RecomputeModule::CoreAttn;
  return std::ranges::find(*model.recompute_modules, module) != model.recompute_modules->end();
}

class KeptBytes {
 public:
  KeptBytes(const Config& config, const Workload& work)
      : model_(config.model), work_(work), product_(work.number == work.wide ? work.element : 1) {}

  double of_layer(std::int64_t layer) const {
    const double stream = work_.own_tokens * number(model_.hidden_size);
    const bool drops_norms = recomputes(model_, RecomputeModule::Layernorm);
    double bytes = 2 * stream * work_.element;           // two residual streams
    bytes += 2 * stream * (drops_norms ? 0 : product_);  // and their norms
    bytes += attention(layer);
    if (!model_.is_moe_layer(layer)) {
      const bool drops = recomputes(model_, RecomputeModule::Mlp);
      return bytes + (drops ? 0 : feed_forward(work_.tokens, number(model_.dense_width())));
    }
    const double shared = number(derive::shared_expert_width(model_));
    if (shared > 0 && !recomputes(model_, RecomputeModule::SharedExperts)) {
      bytes += feed_forward(work_.tokens, shared);
    }
    if (recomputes(model_, RecomputeModule::Moe)) return bytes;
    return bytes + experts();
  }

 private:
  double attention(std::int64_t layer) const {
    const double t = work_.tokens / work_.tp;
    switch (derive::attention_of(model_, layer)) {
      case derive::AttentionKind::Grouped: {
        const double q = number(model_.query_width()), kv = number(model_.key_width());
        return t * (q + 2 * kv + q) * work_.element + t * q * (product_ == 1 ? 1 : 0);
      }
      case derive::AttentionKind::Latent: {
        const double heads = number(model_.num_attention_heads);
        const double wide = number(model_.latent_head_dim()), value = number(model_.v_head_dim);
        const double latents =
            work_.tokens * number(model_.q_lora_rank.value_or(0) + model_.kv_lora_rank +
                                  model_.qk_pos_emb_head_dim);
        const double expanded = recomputes(model_, RecomputeModule::MlaUpProj)
                                    ? 0
                                    : t * heads * (2 * wide + value) * work_.element;
        return latents * 2 * work_.element + expanded + t * heads * value * work_.element;
      }
      case derive::AttentionKind::DeltaNet: {
        const double key = number(model_.linear_num_key_heads * model_.linear_key_head_dim);
        const double value = number(model_.linear_num_value_heads * model_.linear_value_head_dim);
        return t * (4 * key + 5 * value) * work_.element;
      }
    }
    return 0;
  }

  double feed_forward(double tokens, double width) const {
    return tokens * width / work_.tp * (2 * work_.element + product_);
  }

  double experts() const {
    const double width = number(model_.expert_shard_width()), h = number(model_.hidden_size);
    const double activated = recomputes(model_, RecomputeModule::MoeAct) ? 0 : product_;
    const double budget = model_.moe_expert_rank_capacity_factor.value_or(1);
    const double room = model_.moe_paged_stash ? 1 : budget;
    return room * work_.rows * (h * product_ + width * (2 * work_.element + activated)) +
           work_.own_tokens * number(model_.experts()) * 4;
  }

  const ModelConfig& model_;
  const Workload& work_;
  double product_;  // bytes of a value that a weight gradient reads
};

}  // namespace

double kept_by_formula(const Config& config, const Workload& work, std::int64_t layer) {
  return KeptBytes(config, work).of_layer(layer);
}

}  // namespace weft::plan
