#include "weft/rules/missing.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/rules/chosen.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// An optional number of 0 asks for no more than null does.
bool asks_for_nothing(const Field& field, const Config& config) {
  return is_default(field, config) ||
         (field.shape == Shape::Optional && field.get(config) == base::Json(0));
}

// model.offload_modules, with fused_group_mlp replaced by its parts.
std::vector<OffloadModule> built_offloads(const ModelConfig& model) {
  std::vector<OffloadModule> modules;
  for (const OffloadModule module : model.offload_modules) {
    if (module != OffloadModule::FusedGroupMlp) {
      modules.push_back(module);
      continue;
    }
    modules.insert(modules.end(), {OffloadModule::ExpertFc1, OffloadModule::MoeAct});
  }
  return modules;
}

// Replacement for a part that is not built: words to add, and why it is equivalent.
struct Instead {
  std::string_view key, words, why;
};
constexpr std::string_view kWhyNoFp8 =
    "a moment in fp8 needs a scale for each block of numbers, in kernels, checkpoints and shards, "
    "and saves one byte more than bf16";
constexpr Instead kInsteads[] = {
    {"model.cpu_offloading",
     "model.fine_grained_activation_offloading=true model.offload_modules=[core_attn,attn_proj]",
     "whole layers are offloaded with neither a pipeline nor recomputation; modules go with both"},
    {"model.offload_modules",
     "",
     "the experts are no one kernel here, and these two are what fused_group_mlp would offload"},
    {"model.fp16",
     "model.bf16=true",
     "bf16 takes as many bytes, has the range of fp32 and needs no loss scaling"},
    {"optimizer.exp_avg_dtype", "", kWhyNoFp8},
    {"optimizer.exp_avg_sq_dtype", "", kWhyNoFp8}};

// Words to type instead. A backend is replaced by one that sends the same rows and keeps the row
// budget, if there is one.
std::string way_out(const std::string& key, const ModelConfig& model) {
  if (key == "model.moe_flex_dispatcher_backend") {
    return text("{}={}", key, model.moe_expert_rank_capacity_factor ? "hybridep" : "deepep");
  }
  if (key == "model.sequence_parallel") return text("{}=true", key);
  if (key == "model.offload_modules") return key + "=" + typed_list(built_offloads(model));
  if (key == "optimizer.exp_avg_dtype" || key == "optimizer.exp_avg_sq_dtype") return key + "=bf16";
  const Field& field = *find_field(key);
  return field.initial == "\"\"" || field.initial == "[]" ? "~" + key
                                                          : text("{}={}", key, field.initial);
}

// Parts in order of first request, each with all requesting keys.
class Parts {
 public:
  void add(std::string_view part, const std::string& key, const std::string& value) {
    const auto at = std::ranges::find(all_, part, &Missing::part);
    Missing& missing = at != all_.end() ? *at : all_.emplace_back();
    missing.part = part;
    missing.keys.push_back(key);
    if (!missing.message.empty()) missing.message += ", ";
    missing.message += text("{} = {}", key, value);
  }

  std::vector<Missing> take(const ModelConfig& model) {
    for (Missing& missing : all_) {
      missing.message = text("not built yet: {} ({})", missing.part, missing.message);
      std::vector<std::string> ways;
      std::string_view why;
      for (const std::string& key : missing.keys) {
        const std::string way = way_out(key, model);
        if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
        const auto instead = std::ranges::find(kInsteads, key, &Instead::key);
        if (instead == std::end(kInsteads)) continue;
        if (!instead->words.empty()) ways.emplace_back(instead->words);
        why = instead->why;
      }
      missing.fix = text("use {}{}{}", fmt::join(ways, " "), why.empty() ? "" : ": ", why);
    }
    return std::move(all_);
  }

 private:
  std::vector<Missing> all_;
};

// Dtypes of a precision-aware optimizer that are accepted words but not implemented.
template <typename Add>
void add_state_dtypes(const OptimizerConfig& optimizer, const Add& add) {
  if (!optimizer.use_precision_aware_optimizer) return;
  if (optimizer.exp_avg_dtype == base::DType::F8E4M3) {
    add("moments in fp8", "optimizer.exp_avg_dtype");
  }
  if (optimizer.exp_avg_sq_dtype == base::DType::F8E4M3) {
    add("moments in fp8", "optimizer.exp_avg_sq_dtype");
  }
}

// Requests of Megatron words beyond the keys, each as "--squared-relu: what is here instead".
Missing unmodelled_words(const Config& config) {
  std::vector<std::string> words;
  for (const std::string& asked : config.runtime.unmodelled) {
    words.push_back(asked.substr(0, asked.find(": ")));
  }
  return {.part = text("{}", fmt::join(words, ", ")),
          .keys = {"runtime.unmodelled"},
          .message = text("not built yet: {}", fmt::join(config.runtime.unmodelled, "; ")),
          .fix = words.size() == 1 ? "leave it out" : "leave them out"};
}

// Missing part of a run that is judged for GPUs but runs on CPU cores.
Missing no_gpu_asked_for(const Config& config) {
  const std::string key = config.hardware.gpu ? "hardware.gpu" : "hardware.device_name";
  return {.part = kNoGpu,
          .keys = {key, "runtime.device"},
          .message = text("a run for GPUs ({} = {}) on processor cores (runtime.device = cpu)",
                          key,
                          value_text(*find_field(key), config)),
          .fix = text("use runtime.device=cuda, or {}", way_out(key, config.model))};
}

}  // namespace

bool is_built(LoadBalancing kind) {
  return kind != LoadBalancing::Sinkhorn && kind != LoadBalancing::QuantileBalancing;
}

std::vector<Missing> missing_parts(const Config& config) {
  Parts parts;
  const auto add = [&](const std::string& part, const char* key) {
    parts.add(part, key, value_text(*find_field(key), config));
  };
  for (const Field& field : fields()) {
    if (field.support.kind != Support::Kind::Later || asks_for_nothing(field, config)) continue;
    parts.add(field.support.text, field.key, value_text(field, config));
  }
  const ModelConfig& model = config.model;
  // Sequence parallelism gives the same numbers and sends equally many bytes, so it is the only
  // form here.
  if (model.tensor_model_parallel_size > 1 && !model.sequence_parallel) {
    add("tensor parallelism without sequence parallelism", "model.sequence_parallel");
  }
  if (offloads(model, OffloadModule::FusedGroupMlp)) {
    add("offload of fused_group_mlp", "model.offload_modules");
  }
  if (model.moe_router_dtype == base::DType::F64) add("an fp64 router", "model.moe_router_dtype");
  if (model.moe_token_dispatcher_type == Dispatcher::AllToAllSeq) {
    add("the alltoall_seq dispatcher", "model.moe_token_dispatcher_type");
  }
  if (model.moe_token_dispatcher_type == Dispatcher::Flex &&
      model.moe_flex_dispatcher_backend == FlexBackend::NcclEp) {
    add("the ncclep backend", "model.moe_flex_dispatcher_backend");
  }
  if (model.params_dtype == base::DType::F16 && !model.fp16) add("fp16", "model.params_dtype");
  if (model.pipeline_dtype && *model.pipeline_dtype != model.params_dtype) {
    add("a dtype of its own between pipeline stages", "model.pipeline_dtype");
  }
  const bool balanced =
      model.experts() > 0 && !std::ranges::all_of(model.moe_router_load_balancing_type, is_built);
  if (balanced) {
    add("balancing by sinkhorn or by quantiles", "model.moe_router_load_balancing_type");
  }
  add_state_dtypes(config.optimizer, add);
  std::vector<Missing> missing = parts.take(model);
  if (!config.runtime.unmodelled.empty()) missing.push_back(unmodelled_words(config));
  if (derive::is_on_gpu(config) && config.runtime.device == DeviceKind::Cpu) {
    missing.insert(missing.begin(), no_gpu_asked_for(config));
  }
  return missing;
}

namespace {

// Turns ungated feed-forwards into gated ones of two thirds of the width: equally many weights and
// kept values per token. Ranks can still divide the width.
void gate_feed_forwards(ModelConfig& model) {
  if (model.gated_linear_unit) return;
  const std::int64_t parts = model.tensor_model_parallel_size * model.expert_shards();
  const auto gated = [&](std::int64_t width) {
    return std::max(parts, 2 * width / 3 / parts * parts);
  };
  const std::int64_t dense = gated(model.dense_width()), expert = gated(model.expert_width());
  model.ffn_hidden_size = dense;
  if (model.moe_ffn_hidden_size) model.moe_ffn_hidden_size = expert;
  if (model.moe_shared_expert_intermediate_size.value_or(0) > 0) {
    model.moe_shared_expert_intermediate_size = gated(*model.moe_shared_expert_intermediate_size);
  }
}

}  // namespace

Config without_missing(Config config) {
  gate_feed_forwards(config.model);
  if (derive::is_on_gpu(config)) config.runtime.device = DeviceKind::Cuda;
  const bool predicts_more = config.model.mtp_num_layers.value_or(0) > 0;
  for (const Missing& missing : missing_parts(config)) {
    for (const std::string& key : missing.keys) {
      const std::string way = way_out(key, config.model);
      const Field& field = *find_field(key);
      const std::string_view value = std::string_view(way).substr(way.find('=') + 1);
      way.starts_with('~') ? field.copy(Config{}, config)
                           : void(field.set(config, written_from_text(field, value)));
    }
  }
  const bool drops_layers = predicts_more && config.model.mtp_num_layers.value_or(0) == 0;
  if (drops_layers) std::erase(config.model.pipeline_model_parallel_layout, 'm');
  return config;
}

}  // namespace weft::rules
