#include "weft/derive/memory/parameter_buffers.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/derive/derived.h"
#include "weft/derive/memory/memory.h"

namespace weft::derive {
namespace {

constexpr std::int64_t kSmallestBucket = 40'000'000;  // parameters, if no size is given
constexpr std::int64_t kBucketForEachRank = 1'000'000;
// A bucket is complete after the backward of its first layer: the last bucket's exchange has no
// compute to hide it. This limits its share of all elements, whatever the configured size.
constexpr std::int64_t kPortions = 16;

bool is_table(const ParameterSpec& spec) { return spec.name == "embedding.weight"; }

int chunk_of(const Holding& holding, const ParameterSpec& spec) {
  if (spec.layer >= 0) return holding.chunk_of_layer(spec.layer);
  return is_table(spec) && holding.embedding ? 0 : holding.last_chunk();
}

BufferRules rules_for(const config::Config& config, int pp_rank, std::int64_t ranks) {
  const config::DdpConfig& ddp = config.ddp;
  const bool overlaps = ddp.overlap_grad_reduce || ddp.overlap_param_gather;
  BufferRules rules{.shards = ddp.use_distributed_optimizer ? ranks_of_instance(config, ranks) : 1};
  if (overlaps || ddp.use_distributed_optimizer) rules.chunks = Chunks::Apart;
  // A chunk's weights are all gathered at once, under the optimizer's work on the next chunk.
  const bool by_chunks =
      config.optimizer.overlap_param_gather_with_optimizer_step && virtual_stages(config.model) > 1;
  if (!overlaps || pp_rank > 0 || by_chunks) return rules;
  if (ddp.num_buckets) {
    rules.buckets = *ddp.num_buckets;
  } else {
    rules.bucket_size =
        ddp.bucket_size.value_or(std::max(kSmallestBucket, kBucketForEachRank * ranks));
    rules.portions = kPortions;
  }
  return rules;
}

}  // namespace

BufferRules BufferScheme::of(Home home) const {
  switch (home) {
    case Home::Dense:
      return dense;
    case Home::Expert:
      return expert;
    case Home::Untrained:
      return {};
  }
  UNREACHABLE("home {}", static_cast<int>(home));
}

BufferScheme buffer_scheme(const config::Config& config, int pp_rank) {
  const grid::Layout layout = layout_of(config);
  return {.dense = rules_for(config, pp_rank, layout.world / (layout.tp * layout.pp)),
          .expert = rules_for(config, pp_rank, layout.world / (layout.etp * layout.ep * layout.pp)),
          .gradients = main_gradients(config)};
}

base::DType main_gradients(const config::Config& config) {
  const config::OptimizerConfig& optimizer = config.optimizer;
  const bool is_narrow =
      optimizer.use_precision_aware_optimizer && optimizer.main_grads_dtype == base::DType::BF16;
  return is_narrow ? base::DType::BF16 : base::DType::F32;
}

base::DType gradient_wire(const config::Config& config) {
  if (main_gradients(config) == base::DType::BF16) return base::DType::BF16;
  if (config.ddp.grad_reduce_in_fp32) return base::DType::F32;
  return config.model.params_dtype;
}

BufferLayout lay_out(const config::ModelConfig& model,
                     const Holding& holding,
                     const std::vector<const ParameterSpec*>& parameters,
                     const BufferRules& rules) {
  std::vector<BufferItem> items;
  for (const ParameterSpec* spec : parameters) {
    const bool alone = model.share_embeddings_and_output_weights && is_table(*spec);
    items.push_back({.elements = spec->room,
                     .company = alone ? Company::Alone : Company::Any,
                     .chunk = rules.chunks == Chunks::Apart ? chunk_of(holding, *spec) : 0});
  }
  return lay_out(items, rules);
}

}  // namespace weft::derive
