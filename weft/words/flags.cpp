#include "weft/words/flags.h"

#include <algorithm>
#include <array>
#include <map>

#include "weft/base/text.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;
using FlagTakes = KebabFlag::Takes;

// What Megatron-LM's command line calls differently. An empty `sets` is what Weft always does.
struct Spelling {
  std::string_view name;
  FlagTakes takes;
  std::string_view sets;  // separated by spaces
  std::string_view note = "";
  std::string_view only = "";
  std::string_view refusal = "";
  std::optional<Effect> effect = std::nullopt;
};

constexpr std::string_view kCore = "there is one model, written once";
constexpr std::string_view kKernels = "kernels are chosen by the engine";
constexpr std::string_view kMetrics = "metrics go to the run folder and nowhere else";
constexpr std::string_view kSplitData =
    "data of each split is one key here: write dataset.blend_per_split=[[0.3,a,0.7,b],[c],[d]]";
constexpr std::string_view kWarmUp =
    "the warm-up is counted in steps, by scheduler.lr_warmup_iters";

constexpr Spelling refused(std::string_view name, FlagTakes takes, std::string_view why) {
  return {.name = name, .takes = takes, .sets = "", .refusal = why};
}
constexpr Spelling acts(std::string_view name, FlagTakes takes, Effect effect) {
  return {.name = name, .takes = takes, .sets = "", .effect = effect};
}

constexpr Spelling kSpellings[] = {
    {"--fake-init-process-group", FlagTakes::Nothing, "runtime.backend=fake"},
    {"--num-experts", FlagTakes::Value, "model.num_moe_experts={}"},
    {"--fp8-format", FlagTakes::Value, "model.fp8={}"},
    {"--fp4-format", FlagTakes::Value, "model.fp4={}"},
    {"--fp8-param-gather", FlagTakes::Nothing, "ddp.fp8_param_gather=true model.fp8_param=true"},
    {"--num-virtual-stages-per-pipeline-rank",
     FlagTakes::Value,
     "model.virtual_pipeline_model_parallel_size={}"},
    {"--decoder-first-pipeline-num-layers",
     FlagTakes::Value,
     "model.num_layers_in_first_pipeline_stage={}"},
    {"--decoder-last-pipeline-num-layers",
     FlagTakes::Value,
     "model.num_layers_in_last_pipeline_stage={}"},
    {"--no-overlap-p2p-communication", FlagTakes::Nothing, "comm_overlap.overlap_p2p_comm=false"},
    {"--overlap-p2p-communication-warmup-flush",
     FlagTakes::Nothing,
     "model.overlap_p2p_comm_warmup_flush=true"},
    // There one flag is the wish and what comes of it; here those are two keys or three.
    {"--use-distributed-optimizer",
     FlagTakes::Choice,
     "ddp.use_distributed_optimizer={} optimizer.use_distributed_optimizer={}"},
    {"--no-use-distributed-optimizer",
     FlagTakes::Nothing,
     "ddp.use_distributed_optimizer=false optimizer.use_distributed_optimizer=false"},
    {"--num-distributed-optimizer-instances",
     FlagTakes::Value,
     "ddp.num_distributed_optimizer_instances={}"},
    {"--overlap-grad-reduce",
     FlagTakes::Choice,
     "comm_overlap.overlap_grad_reduce={} ddp.overlap_grad_reduce={}"},
    {"--no-overlap-grad-reduce",
     FlagTakes::Nothing,
     "comm_overlap.overlap_grad_reduce=false ddp.overlap_grad_reduce=false"},
    {"--overlap-param-gather",
     FlagTakes::Choice,
     "comm_overlap.overlap_param_gather={} ddp.overlap_param_gather={} "
     "optimizer.overlap_param_gather={}"},
    {"--no-overlap-param-gather",
     FlagTakes::Nothing,
     "comm_overlap.overlap_param_gather=false ddp.overlap_param_gather=false "
     "optimizer.overlap_param_gather=false"},
    {"--ddp-bucket-size", FlagTakes::Value, "ddp.bucket_size={}"},
    {"--ddp-num-buckets", FlagTakes::Value, "ddp.num_buckets={}"},
    {"--ddp-average-in-collective", FlagTakes::Nothing, "ddp.average_in_collective=true"},
    {"--accumulate-allreduce-grads-in-fp32", FlagTakes::Nothing, "ddp.grad_reduce_in_fp32=true"},
    {"--grad-reduce-in-bf16", FlagTakes::Nothing, "ddp.grad_reduce_in_fp32=false"},
    {"--recompute-activations", FlagTakes::Nothing, "model.recompute_granularity=selective"},
    {"--untie-embeddings-and-output-weights",
     FlagTakes::Nothing,
     "model.share_embeddings_and_output_weights=false"},
    {"--disable-bias-linear", FlagTakes::Nothing, "model.add_bias_linear=false"},
    {"--qk-layernorm", FlagTakes::Nothing, "model.qk_layernorm=head"},
    {"--no-rope-fusion", FlagTakes::Nothing, "model.apply_rope_fusion=false"},
    {"--norm-epsilon", FlagTakes::Value, "model.layernorm_epsilon={}"},
    {"--apply-layernorm-1p", FlagTakes::Nothing, "model.layernorm_zero_centered_gamma=true"},
    {"--mock-data", FlagTakes::Nothing, "dataset.kind=mock"},
    {"--data-path", FlagTakes::Value, "dataset.kind=indexed dataset.path={}"},
    {"--no-check-for-nan-in-loss-and-grad",
     FlagTakes::Nothing,
     "rerun_state_machine.check_for_nan_in_loss=false"},
    {"--swiglu", FlagTakes::Nothing, "model.gated_linear_unit=true model.activation_func=silu"},
    {"--quick-geglu",
     FlagTakes::Nothing,
     "model.gated_linear_unit=true model.activation_func=quick_gelu"},
    {"--squared-relu",
     FlagTakes::Nothing,
     "model.gated_linear_unit=false model.activation_func=squared_relu"},
    {"--group-query-attention", FlagTakes::Nothing, "", "model.num_query_groups decides"},
    {"--use-mcore-models", FlagTakes::Nothing, "", kCore},
    {"--transformer-impl", FlagTakes::Value, "", kCore},
    {"--use-flash-attn", FlagTakes::Nothing, "", kKernels},
    {"--attention-backend", FlagTakes::Value, "", kKernels},
    {"--no-masked-softmax-fusion", FlagTakes::Nothing, "", kKernels},
    {"--no-bias-swiglu-fusion", FlagTakes::Nothing, "", kKernels},
    {"--distributed-backend", FlagTakes::Value, "", "runtime.backend says what ranks are"},
    {"--use-rotary-position-embeddings", FlagTakes::Nothing, "model.position_embedding_type=rope"},
    {"--attention-softmax-in-fp32", FlagTakes::Nothing, "", "softmax is always in fp32"},
    {"--make-vocab-size-divisible-by",
     FlagTakes::Value,
     "",
     "behind Megatron-LM's flags it pads the vocabulary; elsewhere model.should_pad_vocab does"},
    {"--padded-vocab-size", FlagTakes::Value, "model.vocab_size={}"},
    {"--reuse-grad-buf-for-mxfp8-param-ag",
     FlagTakes::Nothing,
     "ddp.reuse_grad_buf_for_mxfp8_param_ag=true optimizer.reuse_grad_buf_for_mxfp8_param_ag=true"},
    {"--main-grads-dtype", FlagTakes::Value, "optimizer.main_grads_dtype={}"},
    {"--num-distributed-optimizer-instances",
     FlagTakes::Value,
     "",
     "the optimizer is sharded over all data-parallel ranks",
     "1"},
    {"--lr-warmup-samples", FlagTakes::Value, "", kWarmUp, "0"},
    {"--lr-warmup-fraction", FlagTakes::Value, "", kWarmUp},
    {"--train-samples", FlagTakes::Value, "", "a run ends after train.train_iters steps"},
    {"--split", FlagTakes::Value, "dataset.split={}"},
    {"--data-cache-path", FlagTakes::Value, "", "indices of documents are not kept in files"},
    {"--num-workers", FlagTakes::Value, "", "ranks read their data themselves"},
    {"--ckpt-format",
     FlagTakes::Value,
     "",
     "checkpoints have one format; checkpoint.save_hf writes weights as Transformers opens them"},
    {"--no-load-optim", FlagTakes::Nothing, "checkpoint.load_optim=false"},
    {"--no-load-rng", FlagTakes::Nothing, "checkpoint.load_rng=false"},
    {"--profile", FlagTakes::Nothing, "", "runtime.trace=true writes Weft's own trace"},
    {"--wandb-project", FlagTakes::Value, "", kMetrics},
    {"--wandb-exp-name", FlagTakes::Value, "", kMetrics},
    {"--multiple-validation-sets",
     FlagTakes::Nothing,
     "",
     "every set of dataset.valid_data_path is evaluated alone"},
    refused("--train-data-path", FlagTakes::Value, kSplitData),
    refused("--test-data-path", FlagTakes::Value, kSplitData),
    refused("--use-torch-fsdp2",
            FlagTakes::Nothing,
            "full sharding is ddp.use_megatron_fsdp here: write --use-megatron-fsdp"),
    refused("--moe-extended-tp",
            FlagTakes::Nothing,
            "Megatron-LM has dropped it: write --expert-tensor-parallel-size"),
    acts("--num-layers-per-virtual-pipeline-stage", FlagTakes::Value, Effect::LayersPerChunk),
    acts("--cuda-graph-scope", FlagTakes::Values, Effect::GraphScope),
    acts("--distributed-timeout-minutes", FlagTakes::Value, Effect::Timeout),
};

// The sections in the order in which a bare name is looked for; the others follow as they stand.
int preference(const Field& field) {
  constexpr std::array<std::string_view, 5> kFirst{"comm_overlap",
                                                   "model",
                                                   "train",
                                                   "optimizer",
                                                   "ddp"};
  const auto at = std::ranges::find(kFirst, field.section);
  return static_cast<int>(at - kFirst.begin());
}

std::string kebab(std::string_view name) {
  std::string all = "--" + std::string(name);
  std::ranges::replace(all, '_', '-');
  return all;
}

// The field that each derived name means.
const std::map<std::string, const Field*, std::less<>>& derived_names() {
  static const std::map<std::string, const Field*, std::less<>> all = [] {
    std::map<std::string, const Field*, std::less<>> made;
    for (const Field& field : fields()) {
      const auto [at, fresh] = made.emplace(kebab(field.name), &field);
      if (!fresh && preference(field) < preference(*at->second)) at->second = &field;
    }
    return made;
  }();
  return all;
}

bool is_switch(const Field& field) { return field.type.starts_with(WordCodec<bool>::one()); }

bool takes_list(const Field& field) {
  return field.shape == Shape::List || field.shape == Shape::OptionalList;
}

KebabFlag flag_of(const std::string& name, const Field& field, FlagTakes takes, std::string value) {
  return {.name = name,
          .takes = takes,
          .sets = {text("{}={}", field.key, value)},
          .effect = std::nullopt,
          .note = "",
          .only = "",
          .refusal = "",
          .field = &field};
}

std::optional<KebabFlag> derived_flag(std::string_view name) {
  const auto& names = derived_names();
  if (const auto at = names.find(name); at != names.end()) {
    const Field& field = *at->second;
    const FlagTakes takes = is_switch(field)    ? FlagTakes::Choice
                            : takes_list(field) ? FlagTakes::Values
                                                : FlagTakes::Value;
    return flag_of(at->first, field, takes, "{}");
  }
  constexpr std::string_view kNo = "--no-";
  if (!name.starts_with(kNo)) return std::nullopt;
  const auto at = names.find("--" + std::string(name.substr(kNo.size())));
  if (at == names.end() || !is_switch(*at->second)) return std::nullopt;
  return flag_of(std::string(name), *at->second, FlagTakes::Nothing, "false");
}

// The flag nearest to these letters; dashes in front do not count as alike.
std::optional<std::string> nearest_flag(std::string_view letters) {
  std::vector<std::string> names;
  for (const std::string& name : kebab_flag_names()) names.push_back(name.substr(2));
  for (const HarnessFlag& flag : harness_flags()) names.emplace_back(flag.name);
  return base::nearest(letters, names);
}

}  // namespace

bool is_flag(std::string_view word) {
  return word.size() >= 2 && word.front() == '-' && !base::parse_number(word);
}

std::optional<KebabFlag> find_kebab_flag(std::string_view name) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.name != name) continue;
    KebabFlag flag{.name = std::string(name),
                   .takes = spelling.takes,
                   .sets = {},
                   .effect = spelling.effect,
                   .note = std::string(spelling.note),
                   .only = std::string(spelling.only),
                   .refusal = std::string(spelling.refusal),
                   .field = nullptr};
    if (const auto at = derived_names().find(name); at != derived_names().end()) {
      flag.field = at->second;
    }
    if (!spelling.sets.empty()) flag.sets = base::split(spelling.sets, ' ');
    return flag;
  }
  return derived_flag(name);
}

std::vector<std::string> kebab_flag_names() {
  std::vector<std::string> names{"--config-file"};
  for (const Spelling& spelling : kSpellings) names.emplace_back(spelling.name);
  for (const auto& [name, field] : derived_names()) {
    names.push_back(name);
    if (is_switch(*field)) names.push_back("--no-" + name.substr(2));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string flag_hint(std::string_view name) {
  const std::string_view letters = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  if (find_field(letters) != nullptr) return text("write {}=VALUE, without dashes", letters);
  // snake_case is the harness's; a key's own flag is in kebab-case.
  std::string wanted(name);
  std::ranges::replace(wanted, '_', '-');
  if (find_kebab_flag(wanted)) return text("did you mean '{}'?", wanted);
  if (const auto near = name.size() <= 128 ? nearest_flag(letters) : std::nullopt) {
    return text("did you mean '--{}'?", *near);
  }
  return "flags are named after keys, as in --num-layers for model.num_layers; `weft config` lists "
         "every key";
}

}  // namespace weft::words
