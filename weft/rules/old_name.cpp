// Keys of earlier versions: their values move to the replacing keys, and they return to their
// defaults.
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// Resets an old key after another key has taken its value.
void retire(Judge& judge, std::string_view old_key, std::string_view initial, std::string now) {
  judge.set(old_key, initial, text("{} is an old name", old_key), "write " + now);
}

bool deepep_fits(const ModelConfig& model) {
  return model.moe_token_dispatcher_type == Dispatcher::Flex &&
         model.moe_flex_dispatcher_backend.value_or(FlexBackend::DeepEp) == FlexBackend::DeepEp;
}

void judge_deepep_elsewhere(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_enable_deepep || deepep_fits(model)) return;
  const auto backend = model.moe_flex_dispatcher_backend;
  judge.report("model.moe_enable_deepep",
               text("model.moe_enable_deepep wants deepep under the flex dispatcher, and "
                    "model.moe_token_dispatcher_type = {}, model.moe_flex_dispatcher_backend = {}",
                    word(model.moe_token_dispatcher_type),
                    backend ? word(*backend) : "null"),
               "set model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=deepep, "
               "or leave model.moe_enable_deepep out");
}

void judge_deepep(Judge& judge) {
  if (!judge.model().moe_enable_deepep || !deepep_fits(judge.model())) return;
  const std::string now = "model.moe_flex_dispatcher_backend=deepep";
  judge.set("model.moe_flex_dispatcher_backend",
            "deepep",
            "model.moe_enable_deepep asks for it",
            "write " + now);
  retire(judge, "model.moe_enable_deepep", "false", now);
}

// True if old keys ask for different numbers of SMs, and no newer key decides.
bool sms_are_in_doubt(const ModelConfig& model) {
  return !model.moe_flex_dispatcher_num_sms && model.moe_deepep_num_sms &&
         model.moe_hybridep_num_sms && model.moe_deepep_num_sms != model.moe_hybridep_num_sms;
}

void judge_two_sms(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!sms_are_in_doubt(model)) return;
  judge.report(
      "model.moe_flex_dispatcher_num_sms",
      text("model.moe_deepep_num_sms = {} and model.moe_hybridep_num_sms = {} are both old "
           "names of model.moe_flex_dispatcher_num_sms",
           *model.moe_deepep_num_sms,
           *model.moe_hybridep_num_sms),
      "set model.moe_flex_dispatcher_num_sms instead of both");
}

void judge_sms(Judge& judge) {
  const ModelConfig& model = judge.model();
  const auto old = model.moe_deepep_num_sms ? model.moe_deepep_num_sms : model.moe_hybridep_num_sms;
  if (!old || sms_are_in_doubt(model)) return;
  const std::int64_t sms = model.moe_flex_dispatcher_num_sms.value_or(*old);
  const std::string now = text("model.moe_flex_dispatcher_num_sms={}", sms);
  judge.set("model.moe_flex_dispatcher_num_sms",
            text("{}", sms),
            text("an old name asks for {} SMs", sms),
            "write " + now);
  retire(judge, "model.moe_deepep_num_sms", "null", now);
  retire(judge, "model.moe_hybridep_num_sms", "null", now);
}

void judge_limited_devices(Judge& judge) {
  const std::optional<std::int64_t> devices = judge.model().moe_router_topk_limited_devices;
  if (!devices || !judge.sound({"model.expert_model_parallel_size"})) return;
  const std::int64_t ep = judge.model().expert_model_parallel_size;
  const std::string now =
      text("model.moe_router_group_topk={} model.moe_router_num_groups={}", *devices, ep);
  const std::string why =
      text("model.moe_router_topk_limited_devices = {} of ep = {} ranks", *devices, ep);
  judge.set("model.moe_router_group_topk", text("{}", *devices), why, "write " + now);
  judge.set("model.moe_router_num_groups", text("{}", ep), why, "write " + now);
  retire(judge, "model.moe_router_topk_limited_devices", "null", now);
}

void judge_padding_for_fp8(Judge& judge) {
  if (!judge.model().moe_router_padding_for_fp8) return;
  const std::string now = "model.moe_router_padding_for_quantization=true";
  judge.set("model.moe_router_padding_for_quantization",
            "true",
            "model.moe_router_padding_for_fp8 asks for it",
            "write " + now);
  retire(judge, "model.moe_router_padding_for_fp8", "false", now);
}

void judge_negative_capacity(Judge& judge) {
  const std::optional<double> factor = judge.model().moe_expert_capacity_factor;
  if (!factor || *factor >= 0 || !judge.sound({"model.moe_expert_capacity_factor"})) return;
  judge.set("model.moe_expert_capacity_factor",
            "null",
            text("model.moe_expert_capacity_factor = {} stands for no capacity", *factor));
}

// Graph implementation that an old switch asks for.
std::optional<CudaGraphImpl> old_graph_impl(const ModelConfig& model) {
  if (model.enable_cuda_graph) return CudaGraphImpl::Local;
  if (model.external_cuda_graph) return CudaGraphImpl::TransformerEngine;
  return std::nullopt;
}

bool graphs_are_in_doubt(const ModelConfig& model) {
  const auto old = old_graph_impl(model);
  if (model.enable_cuda_graph && model.external_cuda_graph) return true;
  return old && model.cuda_graph_impl != CudaGraphImpl::None && model.cuda_graph_impl != *old;
}

void judge_two_graphs(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!graphs_are_in_doubt(model)) return;
  judge.report("model.cuda_graph_impl",
               text("model.enable_cuda_graph = {} (local), model.external_cuda_graph = {} "
                    "(transformer_engine) and model.cuda_graph_impl = {} name different captures",
                    model.enable_cuda_graph,
                    model.external_cuda_graph,
                    word(model.cuda_graph_impl)),
               "keep model.cuda_graph_impl alone");
}

void judge_graph_switches(Judge& judge) {
  const auto old = old_graph_impl(judge.model());
  if (!old || graphs_are_in_doubt(judge.model())) return;
  const std::string now = text("model.cuda_graph_impl={}", word(*old));
  judge.set("model.cuda_graph_impl", word(*old), "an old switch asks for it", "write " + now);
  retire(judge, "model.enable_cuda_graph", "false", now);
  retire(judge, "model.external_cuda_graph", "false", now);
}

// A whole layer is no list; a whole iteration stays one word, which G3 handles.
std::vector<CudaGraphScope> graph_modules(const ModelConfig& model) {
  std::vector<CudaGraphScope> all = model.cuda_graph_modules;
  for (const CudaGraphScope scope : model.cuda_graph_scope) {
    if (!contains(all, scope)) all.push_back(scope);
  }
  if (!contains(all, CudaGraphScope::Full)) return all;
  if (contains(all, CudaGraphScope::FullIteration)) return {CudaGraphScope::FullIteration};
  return {};
}

// Names the scopes that are written in an old form.
std::string old_scopes_text(const ModelConfig& model) {
  const bool full = contains(model.cuda_graph_modules, CudaGraphScope::Full) ||
                    contains(model.cuda_graph_scope, CudaGraphScope::Full);
  std::string all;
  if (!model.cuda_graph_scope.empty()) {
    all = "model.cuda_graph_scope is the old name of model.cuda_graph_modules";
  }
  if (!full) return all;
  return all + (all.empty() ? "" : "; ") + "full is an old word: [] is a whole layer";
}

void judge_graph_scope(Judge& judge) {
  const std::vector<CudaGraphScope> modules = graph_modules(judge.model());
  const bool is_said = modules != judge.model().cuda_graph_modules;
  const std::string now = typed_list(modules);
  judge.set("model.cuda_graph_modules",
            now,
            old_scopes_text(judge.model()),
            "write model.cuda_graph_modules=" + now);
  if (is_said) return judge.settle("model.cuda_graph_scope", "[]", "its scopes moved");
  retire(judge, "model.cuda_graph_scope", "[]", "model.cuda_graph_modules=" + now);
}

void judge_graphs(Judge& judge) {
  judge_graph_switches(judge);
  judge_graph_scope(judge);
}

constexpr Rule kOldNameRules[] = {
    {.id = "TC-20",
     .when = "model.moe_enable_deepep while the dispatcher is not flex, or with another backend",
     .then = "refused",
     .why = "The old switch names a backend of the flex dispatcher; what else is asked for "
            "contradicts it.",
     .example = "model.num_moe_experts=4 model.moe_enable_deepep=true",
     .judge = judge_deepep_elsewhere},
    {.id = "TC-20a",
     .kind = Kind::Mended,
     .when = "model.moe_enable_deepep with the flex dispatcher",
     .then = "model.moe_flex_dispatcher_backend := deepep",
     .why = "The switch is the old name of that backend.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.moe_token_dispatcher_type=flex "
                "model.moe_enable_deepep=true",
     .judge = judge_deepep},
    {.id = "TC-31",
     .kind = Kind::Mended,
     .when = "model.moe_deepep_num_sms or model.moe_hybridep_num_sms",
     .then = "model.moe_flex_dispatcher_num_sms := it, unless that is set",
     .why = "One key serves all backends of the flex dispatcher; the newer key wins.",
     .example = "model.moe_deepep_num_sms=20",
     .judge = judge_sms},
    {.id = "TC-31a",
     .when = "model.moe_deepep_num_sms and model.moe_hybridep_num_sms differ, and "
             "model.moe_flex_dispatcher_num_sms is null",
     .then = "refused",
     .why = "Both are old names of one key, which can hold one number.",
     .example = "model.moe_deepep_num_sms=20 model.moe_hybridep_num_sms=16",
     .judge = judge_two_sms},
    {.id = "TC-44",
     .kind = Kind::Mended,
     .when = "model.moe_router_topk_limited_devices",
     .then = "model.moe_router_group_topk := it, model.moe_router_num_groups := ep",
     .why = "A device's experts are a group; groups of any size replaced them.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 model.moe_router_topk_limited_devices=1",
     .judge = judge_limited_devices},
    {.id = "TC-45",
     .kind = Kind::Mended,
     .when = "model.moe_router_padding_for_fp8",
     .then = "model.moe_router_padding_for_quantization := true",
     .why = "The padding serves fp4 as well, and was renamed.",
     .example = "model.num_moe_experts=4 model.fp8=e4m3 model.moe_router_padding_for_fp8=true",
     .judge = judge_padding_for_fp8},
    {.id = "TC-36",
     .kind = Kind::Automatic,
     .when = "model.moe_expert_capacity_factor below 0",
     .then = "model.moe_expert_capacity_factor := null",
     .why = "A negative factor was the word for no capacity before null was.",
     .example = "model.num_moe_experts=4 model.moe_expert_capacity_factor=-1",
     .judge = judge_negative_capacity},
    {.id = "TC-95",
     .kind = Kind::Mended,
     .when = "model.enable_cuda_graph, model.external_cuda_graph, model.cuda_graph_scope, or the "
             "scope full",
     .then =
         "model.cuda_graph_impl := local or transformer_engine, model.cuda_graph_modules := the "
         "scopes, full becomes []",
     .why =
         "Who captures and what is captured are two keys now. Scopes in the old and the new list "
         "are taken together (G4).",
     .example = "model.external_cuda_graph=true model.cuda_graph_scope=[attn] "
                "model.use_te_rng_tracker=true",
     .also = "G4",
     .judge = judge_graphs},
    {.id = "TC-95a",
     .when = "model.enable_cuda_graph, model.external_cuda_graph and model.cuda_graph_impl name "
             "different captures",
     .then = "refused",
     .why = "There is one capture; an old switch beside another says two.",
     .example = "model.external_cuda_graph=true model.cuda_graph_impl=full_iteration "
                "model.use_te_rng_tracker=true rerun_state_machine.check_for_nan_in_loss=false",
     .judge = judge_two_graphs},
};

}  // namespace

std::span<const Rule> old_name_rules() { return kOldNameRules; }

}  // namespace weft::rules
