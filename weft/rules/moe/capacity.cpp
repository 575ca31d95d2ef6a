// Row capacity of an expert and of a rank.
#include <algorithm>

#include "weft/derive/dispatch.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

void judge_padding_alone(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_pad_expert_input_to_capacity || model.moe_expert_capacity_factor) return;
  judge.report("model.moe_pad_expert_input_to_capacity",
               "model.moe_pad_expert_input_to_capacity and model.moe_expert_capacity_factor = null",
               "set model.moe_expert_capacity_factor, or leave the padding out");
}

void judge_rank_capacity(Judge& judge) {
  const ModelConfig& model = judge.model();
  const auto factor = model.moe_expert_rank_capacity_factor;
  if (!factor) return;
  const auto backend = model.moe_flex_dispatcher_backend;
  const bool hybrid = dispatches_by(model, FlexBackend::HybridEp);
  if (!hybrid && !dispatches_by(model, FlexBackend::NcclEp)) {
    judge.report(
        "model.moe_expert_rank_capacity_factor",
        text("model.moe_expert_rank_capacity_factor = {} with "
             "model.moe_token_dispatcher_type = {}, model.moe_flex_dispatcher_backend = {}",
             *factor,
             word(model.moe_token_dispatcher_type),
             backend ? word(*backend) : "null"),
        text("use model.moe_token_dispatcher_type=flex and "
             "model.moe_flex_dispatcher_backend=hybridep{}",
             judge.on_gpu() ? " or ncclep" : ""));
  } else if (judge.on_gpu() && hybrid && !model.use_transformer_engine_op_fuser &&
             !model.moe_use_grouped_tensor) {
    judge.report(
        "model.moe_expert_rank_capacity_factor",
        text("model.moe_expert_rank_capacity_factor = {} with hybridep leaves the counts on "
             "the device, where on GPUs only a fused feed-forward reads them",
             *factor),
        "set model.use_transformer_engine_op_fuser=true, or "
        "model.moe_use_grouped_tensor=true");
  }
}

void judge_budget(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_expert_rank_capacity_factor || model.experts() == 0) return;
  if (!model.tokens_travel()) return;  // no effect; W20 reports it
  if (!judge.sound_section("model.") || !judge.sound_section("train.")) return;
  if (!judge.sound({"comm_overlap.moe_token_slices"})) return;
  const std::int64_t tokens =
      derive::tokens_of_rank(judge.config()) / judge.overlap().moe_token_slices;
  const std::int64_t rows = model.row_budget(tokens);
  const std::int64_t all = tokens * model.expert_grid().per_token;
  const std::int64_t one =
      std::min(model.moe_router_topk, std::max<std::int64_t>(1, model.local_experts()));
  if (rows < one) {
    judge.report(
        "model.moe_expert_rank_capacity_factor",
        text("model.moe_expert_rank_capacity_factor = {} leaves a rank room for {} rows of "
             "{} tokens that choose {} experts each, and a single token may bring it {}",
             *model.moe_expert_rank_capacity_factor,
             rows,
             tokens,
             model.moe_router_topk,
             one),
        "raise model.moe_expert_rank_capacity_factor; 1 is the mean of all ranks");
  } else if (rows < all && !model.moe_expert_capacity_factor) {
    judge.report("model.moe_expert_rank_capacity_factor",
                 text("model.moe_expert_rank_capacity_factor = {} leaves a rank room for {} rows, "
                      "and the ranks get {} each on average: in every step one gets more",
                      *model.moe_expert_rank_capacity_factor,
                      rows,
                      all),
                 "use more than 1, or drop rows by model.moe_expert_capacity_factor");
  }
}

void judge_no_capacity(Judge& judge) {
  if (judge.model().moe_expert_capacity_factor != 0.0) return;
  judge.report(
      "model.moe_expert_capacity_factor",
      "model.moe_expert_capacity_factor = 0 leaves every expert room for 0 rows: all tokens "
      "would be dropped",
      "use more than 0, or null for no capacity");
}

void judge_two_budgets(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_expert_rank_capacity_factor || !model.moe_pad_expert_input_to_capacity) return;
  judge.report("model.moe_expert_rank_capacity_factor",
               text("model.moe_expert_rank_capacity_factor = {} has no effect: experts padded to "
                    "their capacity always have room",
                    *model.moe_expert_rank_capacity_factor),
               "leave one of the two out");
}

void judge_paged_stash(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_paged_stash) return;
  if (model.cpu_offloading) {
    judge.report("model.moe_paged_stash",
                 "model.moe_paged_stash and model.cpu_offloading both keep activations",
                 "set model.cpu_offloading=false");
  }
  if (!model.moe_expert_rank_capacity_factor) {
    judge.report("model.moe_paged_stash",
                 "model.moe_paged_stash keeps the live rows of a fixed budget, and "
                 "model.moe_expert_rank_capacity_factor = null",
                 "set model.moe_expert_rank_capacity_factor");
  }
  for (const OffloadModule module :
       {OffloadModule::ExpertFc1, OffloadModule::MoeAct, OffloadModule::FusedGroupMlp}) {
    if (!offloads(model, module)) continue;
    judge.report("model.offload_modules",
                 text("model.moe_paged_stash and the offload of {} both keep the experts' rows",
                      word(module)),
                 text("take {} out of model.offload_modules", word(module)));
  }
}

void judge_capacity_of_a_folder(Judge& judge) {
  const std::optional<double> factor = judge.model().moe_expert_capacity_factor;
  if (!factor || judge.config().checkpoint.save_hf.empty()) return;
  judge.report("checkpoint.save_hf",
               text("checkpoint.save_hf: a Hugging Face folder cannot say "
                    "model.moe_expert_capacity_factor = {:g}: who loads it drops no tokens, and "
                    "computes something else than this run wherever an expert is full",
                    *factor),
               "leave model.moe_expert_capacity_factor out where others are to load the weights");
}

constexpr Rule kCapacityRules[] = {
    {.id = "TC-38",
     .when = "model.moe_pad_expert_input_to_capacity without model.moe_expert_capacity_factor",
     .then = "refused",
     .why = "Without a factor there is no capacity to pad to.",
     .example = "model.num_moe_experts=4 model.moe_pad_expert_input_to_capacity=true",
     .judge = judge_padding_alone},
    {.id = "TC-39",
     .when = "model.moe_expert_rank_capacity_factor without hybridep or ncclep; on GPUs, with "
             "hybridep and without the op fuser or grouped tensors",
     .then = "refused",
     .why = "A budget for a rank keeps counts on the device; only these backends dispatch without "
            "reading them on the host. The grouped products of CPU ranks read them there.",
     .example = "model.num_moe_experts=4 model.moe_expert_rank_capacity_factor=1.5",
     .judge = judge_rank_capacity},
    {.id = "W65",
     .when =
         "model.moe_expert_rank_capacity_factor leaves less room than a single token may need, or "
         "less than the mean of the ranks where no row is dropped",
     .then = "refused",
     .why = "Every step would run twice.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "train.global_batch_size=2 runtime.ranks_per_node=1 "
                "model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=hybridep "
                "model.moe_expert_rank_capacity_factor=0.01",
     .judge = judge_budget},
    {.id = "W67",
     .when = "model.moe_expert_capacity_factor = 0",
     .then = "refused",
     .why = "No expert would ever see a token.",
     .example = "model.num_moe_experts=4 model.moe_expert_capacity_factor=0",
     .judge = judge_no_capacity},
    {.id = "W68",
     .kind = Kind::Warning,
     .when = "a row budget for each rank beside padding to capacity",
     .then = "warned",
     .why = "The padding is the budget.",
     .example = "model.num_moe_experts=4 model.moe_token_dispatcher_type=flex "
                "model.moe_flex_dispatcher_backend=hybridep "
                "model.moe_expert_rank_capacity_factor=2 model.moe_expert_capacity_factor=1 "
                "model.moe_pad_expert_input_to_capacity=true",
     .judge = judge_two_budgets},
    {.id = "W73",
     .kind = Kind::Warning,
     .when = "checkpoint.save_hf of a model with model.moe_expert_capacity_factor",
     .then = "warned",
     .why = "The format has no word for it, so that who loads the folder computes another model.",
     .example = "model.num_moe_experts=4 model.moe_expert_capacity_factor=1 checkpoint.save_hf=x",
     .judge = judge_capacity_of_a_folder},
    {.id = "TC-47",
     .when = "model.moe_paged_stash with model.cpu_offloading, without a budget for the rank, or "
             "with the experts' inputs offloaded",
     .then = "refused",
     .why = "The stash pages the live rows of the budget; two keepers of one row contradict each "
            "other.",
     .example = "model.num_moe_experts=4 model.moe_paged_stash=true",
     .judge = judge_paged_stash},
};

}  // namespace

std::span<const Rule> capacity_rules() { return kCapacityRules; }

}  // namespace weft::rules
