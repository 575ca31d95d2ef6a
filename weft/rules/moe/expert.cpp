// Number and width of experts and shared experts.
#include "weft/derive/derived.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

void judge_no_experts(Judge& judge) {
  const auto experts = judge.model().num_moe_experts;
  if (!experts || *experts > 0 || !judge.sound({"model.num_moe_experts"})) return;
  judge.report("model.num_moe_experts",
               text("model.num_moe_experts = {}", *experts),
               "use null for a dense model, or at least 1");
}

void judge_expert_width(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.experts() == 0 || model.moe_ffn_hidden_size) return;
  if (!judge.sound({"model.ffn_hidden_size", "model.hidden_size"})) return;
  judge.set("model.moe_ffn_hidden_size",
            text("{}", model.dense_width()),
            text("model.num_moe_experts = {} without model.moe_ffn_hidden_size: an expert is as "
                 "wide as a dense layer, {}",
                 model.experts(),
                 model.dense_width()),
            "set model.moe_ffn_hidden_size");
}

void judge_width_alone(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.num_moe_experts || !model.moe_ffn_hidden_size) return;
  judge.report("model.moe_ffn_hidden_size",
               text("model.moe_ffn_hidden_size = {} without experts", *model.moe_ffn_hidden_size),
               "set model.num_moe_experts, or model.moe_ffn_hidden_size=null");
}

void judge_expert_bias(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.experts() == 0 || !model.add_bias_linear) return;
  const std::int64_t etp = derive::layout_of(judge.config()).etp;
  if (etp == 1) return;
  judge.report(
      "model.add_bias_linear",
      text("model.add_bias_linear with experts cut over etp = {} ranks: each of them would "
           "add the bias",
           etp),
      "set model.expert_tensor_parallel_size=1, or model.add_bias_linear=false");
}

void judge_cut_width(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.experts() == 0 || !judge.sound_section("model.")) return;
  const std::int64_t etp = derive::layout_of(judge.config()).etp, width = model.expert_width();
  if (width % etp == 0) return;
  judge.report("model.expert_tensor_parallel_size",
               text("experts of model.moe_ffn_hidden_size = {} cut over etp = {} ranks: {} columns "
                    "are left over",
                    width,
                    etp,
                    width % etp),
               "use a number of ranks that divides model.moe_ffn_hidden_size");
}

void judge_shared_width(Judge& judge) {
  const auto width = judge.model().moe_shared_expert_intermediate_size;
  if (!width || *width > 0) return;
  if (!judge.sound({"model.moe_shared_expert_intermediate_size"})) return;
  judge.report("model.moe_shared_expert_intermediate_size",
               text("model.moe_shared_expert_intermediate_size = {}", *width),
               "use null for none, or at least 1");
}

void judge_shared_dispatcher(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_shared_expert_overlap) return;
  const Dispatcher dispatcher = model.moe_token_dispatcher_type;
  if (dispatcher == Dispatcher::AllToAll || dispatcher == Dispatcher::Flex) return;
  if (dispatcher == Dispatcher::AllGather && !judge.on_gpu()) return;
  judge.report("model.moe_shared_expert_overlap",
               text("model.moe_shared_expert_overlap with model.moe_token_dispatcher_type = {}",
                    word(dispatcher)),
               "use the alltoall or flex dispatcher, or model.moe_shared_expert_overlap=false");
}

void judge_shared_recompute(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_shared_expert_overlap) return;
  if (!recomputes(model, RecomputeModule::SharedExperts)) return;
  judge.report(
      "model.recompute_modules",
      text("shared_experts, model.moe_shared_expert_intermediate_size = {}, are recomputed, "
           "and model.moe_shared_expert_overlap runs them under communication",
           model.moe_shared_expert_intermediate_size.value_or(0)),
      "take shared_experts out, or set model.moe_shared_expert_overlap=false");
}

constexpr Rule kExpertRules[] = {
    {.id = "TC-5",
     .when = "model.num_moe_experts at or below 0",
     .then = "refused",
     .why = "A model without experts has null.",
     .example = "model.num_moe_experts=0",
     .judge = judge_no_experts},
    {.id = "TC-6",
     .kind = Kind::Mended,
     .when = "experts and model.moe_ffn_hidden_size is null",
     .then = "model.moe_ffn_hidden_size := model.ffn_hidden_size (4 * hidden_size where null)",
     .why = "Experts are usually far narrower than a dense layer, so a forgotten width makes a "
            "model many times larger than meant.",
     .example = "model.num_moe_experts=4",
     .judge = judge_expert_width},
    {.id = "TC-7",
     .when = "model.moe_ffn_hidden_size without experts",
     .then = "refused",
     .why = "It is the width of an expert. Where dense and MoE models are mixed, Megatron "
            "warns and drops it; Weft's runs have one model.",
     .example = "model.moe_ffn_hidden_size=32",
     .judge = judge_width_alone},
    {.id = "TC-9",
     .when = "experts and model.add_bias_linear with etp > 1",
     .then = "refused",
     .why = "The parts of a cut expert are summed, and with them the bias as often as there are "
            "ranks.",
     .example = "model.num_moe_experts=4 model.add_bias_linear=true "
                "model.tensor_model_parallel_size=2",
     .judge = judge_expert_bias},
    {.id = "W90",
     .when = "a model.moe_ffn_hidden_size that is no multiple of etp",
     .then = "refused",
     .why = "Every rank that shares an expert has as many of its columns as any other.",
     .example = "model.num_moe_experts=4 model.moe_ffn_hidden_size=33 runtime.world_size=2 "
                "model.expert_tensor_parallel_size=2 train.global_batch_size=2",
     .judge = judge_cut_width},
    {.id = "TC-32",
     .when = "model.moe_shared_expert_intermediate_size at or below 0",
     .then = "refused",
     .why = "A model without shared experts has null.",
     .example = "model.num_moe_experts=4 model.moe_shared_expert_intermediate_size=0",
     .judge = judge_shared_width},
    {.id = "TC-33",
     .when =
         "model.moe_shared_expert_overlap with a dispatcher other than alltoall and flex (on CPU "
         "ranks, allgather)",
     .then = "refused",
     .why = "Shared experts run between the parts of a dispatch; only these are cut into parts.",
     .example =
         "hardware.gpu=h100 model.num_moe_experts=4 model.moe_shared_expert_intermediate_size=32 "
         "model.moe_shared_expert_overlap=true model.moe_token_dispatcher_type=allgather",
     .judge = judge_shared_dispatcher},
    {.id = "TC-34",
     .when = "shared_experts recomputed with model.moe_shared_expert_overlap",
     .then = "refused",
     .why = "A second forward of the shared experts has no communication to run under.",
     .example = "model.num_moe_experts=4 model.moe_shared_expert_intermediate_size=32 "
                "model.moe_shared_expert_overlap=true model.recompute_granularity=selective "
                "model.recompute_modules=[shared_experts]",
     .judge = judge_shared_recompute},
};

}  // namespace

std::span<const Rule> expert_rules() { return kExpertRules; }

}  // namespace weft::rules
