#include "weft/plan/search/layout_keys.h"

#include <algorithm>
#include <array>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/plan/memory/memory_keys.h"
#include "weft/plan/search/layout_choice.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;

// Keys listed before and after kMemoryKeys (plan/memory/memory_keys.h).
constexpr std::array<std::string_view, 22> kShapeKeys{
    "model.tensor_model_parallel_size",
    "model.sequence_parallel",
    "model.pipeline_model_parallel_size",
    "model.virtual_pipeline_model_parallel_size",
    "model.pipeline_model_parallel_layout",
    "model.num_layers_in_first_pipeline_stage",
    "model.num_layers_in_last_pipeline_stage",
    "model.account_for_embedding_in_pipeline_split",
    "model.account_for_loss_in_pipeline_split",
    "model.context_parallel_size",
    "model.expert_model_parallel_size",
    "model.expert_tensor_parallel_size",
    "train.micro_batch_size",
    "train.global_batch_size",
    "model.seq_length",
    "dataset.seq_length",
    "model.moe_token_dispatcher_type",
    "model.moe_flex_dispatcher_backend",
    "model.moe_shared_expert_overlap",
    "comm_overlap.overlap_moe_expert_parallel_comm",
    "comm_overlap.delay_wgrad_compute",
    "comm_overlap.tp_comm_overlap",
};
constexpr std::array<std::string_view, 9> kFormatKeys{
    "model.use_transformer_engine_op_fuser",
    "model.moe_paged_stash",
    "model.moe_expert_rank_capacity_factor",
    "rerun_state_machine.check_for_nan_in_loss",
    "model.use_te_rng_tracker",
    "rng.te_rng_tracker",
    "model.fp8",
    "model.fp8_recipe",
    "model.fp4",
};

std::vector<std::string_view> all_layout_keys() {
  std::vector<std::string_view> all(kShapeKeys.begin(), kShapeKeys.end());
  all.insert(all.end(), kMemoryKeys.begin(), kMemoryKeys.end());
  all.insert(all.end(), kFormatKeys.begin(), kFormatKeys.end());
  return all;
}

bool is_of_experts(std::string_view key) {
  return key.find("moe") != key.npos || key.find("expert") != key.npos ||
         key == "comm_overlap.delay_wgrad_compute";
}

// True for switches that layouts seldom use.
bool is_rare_switch(std::string_view key) {
  return key == "model.fine_grained_activation_offloading" ||
         key == "optimizer.optimizer_cpu_offload" ||
         key == "model.account_for_embedding_in_pipeline_split" ||
         key == "model.account_for_loss_in_pipeline_split" ||
         key == "model.use_transformer_engine_op_fuser" || key == "model.moe_paged_stash" ||
         key == "rerun_state_machine.check_for_nan_in_loss";
}

// True for keys that matter only with their switch on.
bool needs_switch(std::string_view key) {
  return key == "model.offload_modules" || key.starts_with("optimizer.optimizer_offload") ||
         key.starts_with("optimizer.overlap_cpu");
}

// True if the key has no effect in this run.
bool has_no_effect(std::string_view key, const config::Field& field, const Config& config) {
  if (key == "model.fp8_recipe" && !config.model.fp8) return true;
  if (config.model.experts() == 0 && is_of_experts(key)) return true;
  return needs_switch(key) && config::is_default(field, config);
}

const config::Field& layout_field(std::string_view key) {
  const config::Field* field = config::find_field(key);
  CHECK(field != nullptr, "no key '{}'", key);
  return *field;
}

bool needs_quotes(std::string_view value) {
  return value.find_first_of("|*()[]{} \"'$&;<>?!~#") != std::string_view::npos;
}

}  // namespace

base::Json layout_keys(const Config& config) {
  base::Json keys = base::Json::object();
  for (const std::string_view key : all_layout_keys()) {
    const config::Field& field = layout_field(key);
    if (has_no_effect(key, field, config)) continue;
    const bool may_be_left = is_rare_switch(key) || field.get(config).is_null();
    if (may_be_left && config::is_default(field, config)) continue;
    keys[std::string(key)] = field.get(config);
  }
  return keys;
}

std::vector<std::string> layout_overrides(const Config& config) {
  std::vector<std::string> words;
  for (const std::string_view key : all_layout_keys()) {
    const config::Field& field = layout_field(key);
    if (has_no_effect(key, field, config)) continue;
    const base::Json value = field.get(config);
    std::string written = value.is_string() ? value.get<std::string>() : value.dump();
    if (written.empty()) written = "null";
    // Lists of words in Hydra's syntax: [moe_act,layernorm].
    std::erase(written, '"');
    const std::string override = text("{}={}", key, written);
    words.push_back(needs_quotes(written) ? text("'{}'", override) : override);
  }
  return words;
}

}  // namespace weft::plan
