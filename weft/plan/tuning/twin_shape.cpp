#include "weft/plan/tuning/twin_shape.h"

#include <algorithm>
#include <numeric>

#include "weft/base/text.h"
#include "weft/derive/context_sharing.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/tuning/twin.h"

namespace weft::plan {

using namespace config;
namespace {

using base::text;

// Sizes for a step well under a second on two cores.
constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kHeadWidth = 16;
constexpr std::int64_t kCompressed = 24;  // latent attention
constexpr std::int64_t kDenseWidth = 128;
constexpr std::int64_t kSharedWidth = 32;
constexpr std::int64_t kSequence = 32;
constexpr std::int64_t kVocabulary = 256;
constexpr std::int64_t kLayers = 4;   // if one stage holds them all
constexpr std::int64_t kStages = 16;  // pp * vpp
constexpr std::int64_t kExperts = 512;
constexpr std::int64_t kFew = 2;  // ranks that stand for many on an axis

constexpr const char* kSmaller = "small enough for any machine";

// Narrower experts if there are many, so that their state stays small.
std::int64_t expert_width(std::int64_t experts) {
  return experts <= 64 ? 32 : experts <= 256 ? 16 : 8;
}

std::int64_t largest_proper_divisor(std::int64_t number) {
  for (std::int64_t d = 2; d * d <= number; ++d) {
    if (number % d == 0) return number / d;
  }
  return 1;
}

// Shrinks the larger of pp and ep, so that a pipeline of expert-parallel ranks stays one: pp down
// to 2, ep to a divisor, which also divides the experts.
void fit(grid::Layout& twin) {
  while (grid::fewest_ranks(twin) > kMostTwinRanks) {
    const bool pipeline_gives =
        twin.pp > 2 && (twin.pp > twin.ep || largest_proper_divisor(twin.ep) == 1);
    if (pipeline_gives) {
      twin.pp = std::max<std::int64_t>(2, twin.pp / 2);
    } else {
      twin.ep = largest_proper_divisor(twin.ep);
    }
  }
}

// A hierarchical exchange keeps its two levels.
std::int64_t context_ranks(const ModelConfig& model) {
  const bool is_hierarchical = !model.hierarchical_context_parallel_sizes.empty();
  return std::min(model.context_parallel_size, is_hierarchical ? kFew * kFew : kFew);
}

// Two ranks of an axis stand for many; pp and ep share the rest of kMostTwinRanks.
grid::Layout twin_layout(const Config& config) {
  grid::Layout twin = derive::layout_of(config);
  twin.tp = std::min(twin.tp, kFew);
  twin.cp = context_ranks(config.model);
  twin.etp = std::min(twin.etp, kFew);
  fit(twin);
  return twin;
}

std::int64_t world_of(const Config& model, const ModelConfig& twin) {
  Config alone;
  alone.model = twin;
  const std::int64_t smallest = derive::layout_of(alone).world;
  const std::int64_t wanted = model.runtime.world_size.value_or(smallest);
  return std::max(smallest, std::min(wanted, kMostTwinRanks) / smallest * smallest);
}

void set_world(const Config& model, TwinDraft& draft) {
  RuntimeConfig& runtime = draft.config.runtime;
  const std::string why = text("at most {} ranks", kMostTwinRanks);
  const std::int64_t world = world_of(model, draft.config.model);
  if (runtime.world_size) {
    draft.set("runtime.world_size", runtime.world_size, std::optional(world), why);
  }
  // Two machines stand for many; an odd world is one machine.
  const std::int64_t ranks = world % 2 == 0 ? world / 2 : world;
  const ModelConfig& twin = draft.config.model;
  const bool hybrid = dispatches_by(twin, FlexBackend::HybridEp);
  if (runtime.ranks_per_node && world % *runtime.ranks_per_node != 0) {
    draft.set("runtime.ranks_per_node", runtime.ranks_per_node, std::optional(ranks), why);
  } else if (!runtime.ranks_per_node && hybrid && twin.expert_model_parallel_size > 1) {
    draft.set("runtime.ranks_per_node",
              runtime.ranks_per_node,
              std::optional(ranks),
              "hybridep sends by machine, and CPU ranks have none of their own");
  }
}

// Number of layers before the first MoE layer.
std::int64_t leading_dense(const ModelConfig& model) {
  std::int64_t layer = 0;
  while (layer < model.num_layers && !model.is_moe_layer(layer)) ++layer;
  return layer;
}

// Dense layers first (at least one if the model has any), then the model's pattern.
std::vector<std::int64_t> pattern(const ModelConfig& model, std::int64_t layers) {
  const std::int64_t dense = leading_dense(model);
  std::int64_t kept = dense == 0 ? 0 : std::max<std::int64_t>(1, layers * dense / model.num_layers);
  if (dense < model.num_layers) kept = std::min(kept, layers - 1);
  std::vector<std::int64_t> kinds;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::int64_t like = std::min(dense + layer - kept, model.num_layers - 1);
    kinds.push_back(layer >= kept && model.is_moe_layer(like) ? 1 : 0);
  }
  return kinds;
}

void even_stages(TwinDraft& draft) {
  ModelConfig& model = draft.config.model;
  const std::string why = "the twin's stages are equal";
  const std::optional<std::int64_t> none;
  draft.set("model.pipeline_model_parallel_layout",
            model.pipeline_model_parallel_layout,
            std::string(),
            why);
  draft.set("model.num_layers_in_first_pipeline_stage",
            model.num_layers_in_first_pipeline_stage,
            none,
            why);
  draft.set("model.num_layers_in_last_pipeline_stage",
            model.num_layers_in_last_pipeline_stage,
            none,
            why);
  draft.set("model.account_for_embedding_in_pipeline_split",
            model.account_for_embedding_in_pipeline_split,
            false,
            why);
  draft.set("model.account_for_loss_in_pipeline_split",
            model.account_for_loss_in_pipeline_split,
            false,
            why);
}

// Chunks per pipeline rank of the model; a layout gives them by its stages.
std::int64_t chunks_of(const ModelConfig& model) {
  if (model.virtual_pipeline_model_parallel_size) return derive::virtual_stages(model);
  if (model.pipeline_model_parallel_layout.empty()) return 1;
  const std::int64_t stages = derive::stages_in_layout(model).value_or(1);
  return std::max<std::int64_t>(1, stages / model.pipeline_model_parallel_size);
}

std::optional<std::int64_t> batches_of(const Config& config) {
  const grid::Layout layout = derive::layout_of(config);
  const std::int64_t dense = layout.tp * layout.cp * layout.pp;
  const std::int64_t together =
      config.train.micro_batch_size * std::max<std::int64_t>(1, layout.world / dense);
  if (config.train.global_batch_size % together != 0) return std::nullopt;
  return config.train.global_batch_size / together;
}

// Ranks with key heads of their own in some layer, if there are enough heads.
std::int64_t ranks_with_heads(const ModelConfig& model) {
  std::int64_t ranks = 1;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    ranks = std::max(ranks, derive::attention_sharing(model, layer).head_ranks);
  }
  return ranks * model.tensor_model_parallel_size;
}

void shrink_axes(TwinDraft& draft) {
  ModelConfig& twin = draft.config.model;
  const grid::Layout fewer = twin_layout(draft.config);
  const std::string why = text("at most {} ranks", kMostTwinRanks);
  draft.set("model.tensor_model_parallel_size", twin.tensor_model_parallel_size, fewer.tp, why);
  draft.set("model.context_parallel_size", twin.context_parallel_size, fewer.cp, why);
  draft.set("model.pipeline_model_parallel_size", twin.pipeline_model_parallel_size, fewer.pp, why);
  draft.set("model.expert_model_parallel_size", twin.expert_model_parallel_size, fewer.ep, why);
  if (twin.expert_tensor_parallel_size) {
    draft.set("model.expert_tensor_parallel_size",
              twin.expert_tensor_parallel_size,
              std::optional(fewer.etp),
              why);
  }
  if (!twin.hierarchical_context_parallel_sizes.empty()) {
    draft.set("model.hierarchical_context_parallel_sizes",
              twin.hierarchical_context_parallel_sizes,
              std::vector(2, kFew),
              why);
  }
  draft.set("model.sequence_parallel",
            twin.sequence_parallel,
            fewer.tp > 1,
            "not built yet: tensor parallelism without sequence parallelism");
}

}  // namespace

void shrink_ranks(const Config& model, TwinDraft& draft) {
  shrink_axes(draft);
  set_world(model, draft);
  if (draft.config.runtime.backend != CommBackend::Threads) {
    draft.set("runtime.backend",
              draft.config.runtime.backend,
              CommBackend::Threads,
              "the twin's ranks are threads of one process");
  }
  if (draft.config.runtime.device != DeviceKind::Cpu) {
    draft.set("runtime.device",
              draft.config.runtime.device,
              DeviceKind::Cpu,
              "the twin runs on processor cores");
  }
  draft.set("runtime.threads_per_rank",
            draft.config.runtime.threads_per_rank,
            std::int64_t{1},
            kSmaller);
}

void shrink_layers(const Config& model, TwinDraft& draft) {
  ModelConfig& twin = draft.config.model;
  const std::int64_t pp = twin.pipeline_model_parallel_size;
  const std::int64_t chunks =
      std::min(chunks_of(model.model), std::max<std::int64_t>(2, kStages / pp));
  if (twin.virtual_pipeline_model_parallel_size || chunks > 1) {
    draft.set("model.virtual_pipeline_model_parallel_size",
              twin.virtual_pipeline_model_parallel_size,
              std::optional(chunks),
              text("at most {} stages", kStages));
  }
  even_stages(draft);
  const std::int64_t stages = pp * chunks;
  const std::int64_t most = std::min(model.model.num_layers, std::max(stages, kLayers));
  const std::int64_t layers = std::max<std::int64_t>(1, most / stages) * stages;
  draft.set("model.num_layers", twin.num_layers, layers, kSmaller);
  if (std::ssize(twin.cp_comm_type) > layers) {
    draft.set("model.cp_comm_type",
              twin.cp_comm_type,
              {twin.cp_comm_type.begin(), twin.cp_comm_type.begin() + layers},
              "one kind a layer");
  }
  if (twin.experts() == 0 || twin.moe_layer_freq.size() <= 1) return;
  draft.set("model.moe_layer_freq",
            twin.moe_layer_freq,
            pattern(model.model, layers),
            "the same pattern over fewer layers");
}

void shrink_widths(const Config& model, TwinDraft& draft) {
  ModelConfig& twin = draft.config.model;
  const auto cap = [&](const char* key, std::int64_t& field, std::int64_t most) {
    draft.set(key, field, std::min(field, most), kSmaller);
  };
  const std::int64_t heads = twin.num_attention_heads, groups = twin.query_groups();
  const std::int64_t head =
      std::max<std::int64_t>(2, std::min(kHeadWidth, model.model.head_dim()) / 2 * 2);
  if (twin.experts() > kExperts) {
    const std::int64_t ep = twin.expert_model_parallel_size;
    draft.set("model.num_moe_experts",
              twin.num_moe_experts,
              std::optional(kExperts / ep * ep),
              text("at most {} experts", kExperts));
    cap("model.moe_router_topk", twin.moe_router_topk, twin.experts());
  }
  cap("model.hidden_size", twin.hidden_size, kHidden);
  cap("model.num_attention_heads", twin.num_attention_heads, kHeads);
  if (twin.num_query_groups) {
    const std::int64_t least = std::min(groups, ranks_with_heads(twin));
    const std::int64_t kept = std::max(least, twin.num_attention_heads * groups / heads);
    draft.set("model.num_query_groups",
              twin.num_query_groups,
              std::optional(twin.num_attention_heads % kept == 0 ? kept : 1),
              kSmaller);
  }
  if (twin.multi_latent_attention) {
    if (twin.q_lora_rank) {
      draft.set("model.q_lora_rank",
                twin.q_lora_rank,
                std::optional(std::min(*twin.q_lora_rank, kCompressed)),
                kSmaller);
    }
    cap("model.kv_lora_rank", twin.kv_lora_rank, kCompressed);
    cap("model.qk_head_dim", twin.qk_head_dim, kHeadWidth);
    cap("model.qk_pos_emb_head_dim", twin.qk_pos_emb_head_dim, kHeadWidth / 2);
    cap("model.v_head_dim", twin.v_head_dim, kHeadWidth);
  }
  const std::int64_t dense = std::min(model.model.dense_width(), kDenseWidth);
  const std::int64_t expert = std::min(model.model.expert_width(), expert_width(twin.experts()));
  const bool plain = !twin.multi_latent_attention;
  if (plain && (twin.num_attention_heads * head != twin.hidden_size || twin.kv_channels)) {
    draft.set("model.kv_channels", twin.kv_channels, std::optional(head), kSmaller);
  }
  if (twin.dense_width() != dense) {
    draft.set("model.ffn_hidden_size", twin.ffn_hidden_size, std::optional(dense), kSmaller);
  }
  if (twin.experts() > 0 && twin.expert_width() != expert) {
    draft.set("model.moe_ffn_hidden_size",
              twin.moe_ffn_hidden_size,
              std::optional(expert),
              kSmaller);
  }
  if (twin.moe_shared_expert_intermediate_size.value_or(0) > kSharedWidth) {
    draft.set("model.moe_shared_expert_intermediate_size",
              twin.moe_shared_expert_intermediate_size,
              std::optional(kSharedWidth),
              kSmaller);
  }
  cap("model.seq_length", twin.seq_length, kSequence);
  cap("model.vocab_size", twin.vocab_size, kVocabulary);
  if (twin.should_pad_vocab) {
    cap("model.make_vocab_size_divisible_by", twin.make_vocab_size_divisible_by, 1);
  }
  if (twin.pad_token_id.value_or(0) >= twin.vocab_size) {
    draft.set("model.pad_token_id",
              twin.pad_token_id,
              std::optional(twin.vocab_size - 1),
              "inside the twin's vocabulary");
  }
}

void shrink_batch(const Config& model, TwinDraft& draft) {
  ModelConfig& twin = draft.config.model;
  TrainConfig& train = draft.config.train;
  const std::int64_t pp = twin.pipeline_model_parallel_size;
  std::int64_t batches = std::min(batches_of(model).value_or(1), kMostTwinBatches);
  if (derive::virtual_stages(twin) > 1) batches = std::max(pp, batches / pp * pp);
  const grid::Layout layout = derive::layout_of(draft.config);
  const std::int64_t dp = layout.world / (layout.pp * layout.tp * layout.cp);
  const std::int64_t edp = layout.world / (layout.pp * layout.etp * layout.ep);
  std::int64_t& instances = draft.config.ddp.num_distributed_optimizer_instances;
  draft.set("ddp.num_distributed_optimizer_instances",
            instances,
            std::gcd(instances, std::gcd(dp * layout.cp, edp)),
            "of equal size");
  draft.set("train.micro_batch_size", train.micro_batch_size, std::int64_t{1}, kSmaller);
  draft.set("train.global_batch_size",
            train.global_batch_size,
            batches * dp,
            text("{} micro-batches on {} data-parallel ranks", batches, dp));
  draft.set("model.microbatch_group_size_per_vp_stage",
            twin.microbatch_group_size_per_vp_stage,
            std::optional<std::int64_t>(),
            "it follows from the twin's pipeline");
  draft.set("train.eval_interval", train.eval_interval, std::int64_t{0}, "nothing is evaluated");
  DatasetConfig& dataset = draft.config.dataset;
  const std::string why = "mock tokens of the twin's vocabulary";
  draft.set("dataset.kind", dataset.kind, DataKind::Mock, why);
  draft.set("dataset.path", dataset.path, std::string(), why);
  draft.set("dataset.blend", dataset.blend, std::vector<std::string>(), why);
  draft.set("dataset.blend_per_split", dataset.blend_per_split, std::vector<std::string>(), why);
  draft.set("dataset.split", dataset.split, std::string(), why);
  draft.set("dataset.extensions", dataset.extensions, std::vector<std::string>(), why);
  draft.set("dataset.seq_length", dataset.seq_length, std::optional<std::int64_t>(), why);
}

}  // namespace weft::plan
