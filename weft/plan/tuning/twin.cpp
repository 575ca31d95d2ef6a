#include "weft/plan/tuning/twin.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/config/field.h"
#include "weft/plan/tuning/twin_shape.h"
#include "weft/rules/missing.h"
#include "weft/rules/validate.h"

namespace weft::plan {

using namespace config;
namespace {

using base::text;

// Built keys that by the rules require unbuilt parts; null or false requires nothing.
struct Wish {
  const char* key;
  const char* why;
};
constexpr const char* kSms = "CPU ranks have no SMs";
constexpr const char* kGraphs = "CUDA graphs are not built yet";
constexpr Wish kWishes[] = {
    {"model.moe_flex_dispatcher_num_sms", kSms},
    {"model.moe_deepep_num_sms", kSms},
    {"model.moe_hybridep_num_sms", kSms},
    {"model.enable_cuda_graph", kGraphs},
    {"model.external_cuda_graph", kGraphs},
    {"comm_overlap.data_parallel_size", "it follows from the twin's layout"},
    {"runtime.schedule", "it is for the layout of the model"},
    {"checkpoint.pretrained_checkpoint", "the twin's weights are random"},
    {"checkpoint.save_hf", "the twin's weights are not worth keeping"},
};

// True if the key was not at its default.
bool reset(TwinDraft& draft, const Field& field, const std::string& why) {
  if (is_default(field, draft.config)) return false;
  field.copy(Config(), draft.config);
  draft.why[field.key] = why;
  return true;
}

void leave_hardware(TwinDraft& draft) {
  for (const Field& field : fields()) {
    if (field.section == "hardware") reset(draft, field, "the twin runs on CPU ranks");
  }
}

void leave_unbuilt(TwinDraft& draft) {
  for (const Field& field : fields()) {
    if (field.support.kind != Support::Kind::Later) continue;
    reset(draft, field, text("not built yet: {}", field.support.text));
  }
  for (const Wish& wish : kWishes) {
    const Field& field = *find_field(wish.key);
    if (field.get(draft.config) != base::Json(false)) reset(draft, field, wish.why);
  }
}

// Resets keys that only matter with a key now at its default; such keys may govern others.
void leave_governed(TwinDraft& draft) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Field& field : fields()) {
      if (field.support.kind != Support::Kind::With) continue;
      if (!is_default(*find_field(field.support.text), draft.config)) continue;
      changed |= reset(draft, field, text("matters only with {}", field.support.text));
    }
  }
}

// bf16 stands for every precision below fp32.
void keep_precision(const Config& model, TwinDraft& draft) {
  const bool low = model.model.bf16 || model.model.fp16 || model.model.fp8 || model.model.fp4 ||
                   model.model.params_dtype != base::DType::F32;
  if (!low) return;
  const std::string why = "bf16 stands for every precision below fp32";
  draft.set("model.params_dtype",
            draft.config.model.params_dtype,
            config::ParamsDType(DType::BF16),
            why);
  draft.set("model.bf16", draft.config.model.bf16, true, why);
  draft.set("optimizer.fp16", draft.config.optimizer.fp16, false, why);
  if (draft.config.model.pipeline_dtype) {
    draft.set("model.pipeline_dtype",
              draft.config.model.pipeline_dtype,
              std::optional<config::ParamsDType>(DType::BF16),
              why);
  }
}

void keep_balancing(TwinDraft& draft) {
  ModelConfig& model = draft.config.model;
  if (std::ranges::all_of(model.moe_router_load_balancing_type, rules::is_built)) return;
  const double coeff = model.moe_aux_loss_coeff.empty() ? 0 : model.moe_aux_loss_coeff.front();
  const std::string why = "not built yet: balancing by sinkhorn or by quantiles";
  draft.set("model.moe_router_load_balancing_type",
            model.moe_router_load_balancing_type,
            std::vector{LoadBalancing::AuxLoss},
            why);
  draft.set("model.moe_aux_loss_coeff", model.moe_aux_loss_coeff, std::vector{coeff}, why);
}

void keep_router(TwinDraft& draft) {
  if (draft.config.model.moe_router_dtype != base::DType::F64) return;
  draft.set("model.moe_router_dtype",
            draft.config.model.moe_router_dtype,
            std::optional<config::RouterDType>(DType::F32),
            "not built yet: an fp64 router");
}

void keep_dispatcher(TwinDraft& draft) {
  ModelConfig& model = draft.config.model;
  if (model.moe_token_dispatcher_type == Dispatcher::AllToAllSeq) {
    draft.set("model.moe_token_dispatcher_type",
              model.moe_token_dispatcher_type,
              Dispatcher::AllToAll,
              "not built yet: the alltoall_seq dispatcher");
  }
  if (model.moe_flex_dispatcher_backend == FlexBackend::NcclEp) {
    draft.set("model.moe_flex_dispatcher_backend",
              model.moe_flex_dispatcher_backend,
              std::optional(FlexBackend::DeepEp),
              "not built yet: the ncclep backend; deepep sends the same rows");
  }
}

void give_up(TwinDraft& draft, const Field& field, const std::string& why) {
  if (reset(draft, field, why)) draft.given_up.push_back(text("{} ({})", field.key, why));
}

// Resets the key named by a rule that refuses the twin. A rule unknown to this file costs the twin
// that key, not the run.
void mend(TwinDraft& draft) {
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    const rules::Verdict verdict = rules::judge(draft.config);
    if (verdict.runs()) return;
    for (const Finding& error : verdict.errors) {
      if (const Field* field = find_field(error.key)) give_up(draft, *field, to_text(error));
    }
    for (const rules::Missing& part : verdict.missing) {
      for (const std::string& key : part.keys) give_up(draft, *find_field(key), part.message);
    }
    leave_governed(draft);
  }
}

std::vector<Change> changes_of(const Config& config, const TwinDraft& draft) {
  std::vector<Change> changes;
  for (const Field& field : fields()) {
    const base::Json from = field.get(config), to = field.get(draft.config);
    if (from == to) continue;
    const auto why = draft.why.find(field.key);
    CHECK(why != draft.why.end(), "the twin changes {} and does not say why", field.key);
    changes.push_back({.key = field.key, .from = from, .to = to, .why = why->second});
  }
  return changes;
}

}  // namespace

Twin twin_of(const Config& config) {
  TwinDraft draft{.config = config, .why = {}};
  leave_hardware(draft);
  leave_unbuilt(draft);
  leave_governed(draft);
  keep_precision(config, draft);
  keep_balancing(draft);
  keep_router(draft);
  keep_dispatcher(draft);
  shrink_ranks(config, draft);
  shrink_layers(config, draft);
  shrink_widths(config, draft);
  shrink_batch(config, draft);
  leave_governed(draft);
  mend(draft);
  return {.config = draft.config,
          .changes = changes_of(config, draft),
          .given_up = std::move(draft.given_up)};
}

}  // namespace weft::plan
