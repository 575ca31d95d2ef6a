// Scores, groups and balance of the router.
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

constexpr std::int64_t kManyExperts = 32;

void judge_router_dtype(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.experts() < kManyExperts || model.moe_router_dtype) return;
  judge.report("model.moe_router_dtype",
               text("model.num_moe_experts = {} and model.moe_router_dtype = null: Weft's router "
                    "computes in fp32 all the same, others would take the dtype of the activations",
                    model.experts()),
               "set model.moe_router_dtype=fp32");
}

void judge_topk(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.experts() == 0 || model.moe_router_topk <= model.experts()) return;
  if (!judge.sound({"model.moe_router_topk", "model.num_moe_experts"})) return;
  judge.report("model.moe_router_topk",
               text("model.moe_router_topk = {} of model.num_moe_experts = {}",
                    model.moe_router_topk,
                    model.experts()),
               text("use at most {}", model.experts()));
}

bool balances_by(const ModelConfig& model, LoadBalancing kind) {
  return contains(model.moe_router_load_balancing_type, kind);
}

void judge_capacity_balance(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_expert_capacity_factor) return;
  for (const LoadBalancing kind : {LoadBalancing::Sinkhorn, LoadBalancing::QuantileBalancing}) {
    if (!balances_by(model, kind)) continue;
    judge.report("model.moe_router_load_balancing_type",
                 text("model.moe_expert_capacity_factor = {} with "
                      "model.moe_router_load_balancing_type = {}",
                      *model.moe_expert_capacity_factor,
                      word(kind)),
                 "use aux_loss, seq_aux_loss, global_aux_loss or none");
  }
}

void judge_coefficients(Judge& judge) {
  const ModelConfig& model = judge.model();
  const std::size_t kinds = model.moe_router_load_balancing_type.size();
  if (kinds == model.moe_aux_loss_coeff.size()) return;
  judge.report("model.moe_aux_loss_coeff",
               text("model.moe_router_load_balancing_type = {} names {} losses, and "
                    "model.moe_aux_loss_coeff has {} coefficients",
                    typed_list(model.moe_router_load_balancing_type),
                    kinds,
                    model.moe_aux_loss_coeff.size()),
               "give one coefficient for each loss");
}

void judge_bias_score(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_router_enable_expert_bias) return;
  if (model.moe_router_score_function != ScoreFunction::Softmax) return;
  judge.report("model.moe_router_enable_expert_bias",
               "model.moe_router_enable_expert_bias with model.moe_router_score_function = softmax",
               "set model.moe_router_score_function=sigmoid or sqrtsoftplus");
}

void judge_one_expert(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.experts() == 0 || model.moe_router_topk != 1 || model.moe_router_pre_softmax) return;
  if (model.moe_router_score_function != ScoreFunction::Softmax) return;
  if (balances_by(model, LoadBalancing::Sinkhorn)) return;
  judge.report("model.moe_router_topk",
               "model.moe_router_topk = 1 with softmax over the selected logits is always 1, and "
               "the router learns nothing",
               "set model.moe_router_pre_softmax=true");
}

// The groups that a token keeps must hold its experts, and a group the experts that rate it.
void judge_group_sizes(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!judge.sound({"model.moe_router_topk", "model.moe_router_group_score_topk"})) return;
  const std::int64_t groups = *model.moe_router_num_groups, size = model.experts() / groups;
  const std::int64_t kept = std::min(model.moe_router_group_topk.value_or(groups), groups);
  if (model.moe_router_topk <= model.experts() && model.moe_router_topk > kept * size) {
    judge.report("model.moe_router_group_topk",
                 text("model.moe_router_topk = {} experts in model.moe_router_group_topk = {} of "
                      "model.moe_router_num_groups = {} groups of {}",
                      model.moe_router_topk,
                      kept,
                      groups,
                      size),
                 text("use at least {}", (model.moe_router_topk + size - 1) / size));
  }
  const auto counted = model.moe_router_group_score_topk;
  if (counted && *counted > size) {
    judge.report("model.moe_router_group_score_topk",
                 text("model.moe_router_group_score_topk = {} of groups of {} experts "
                      "(model.num_moe_experts = {}, model.moe_router_num_groups = {})",
                      *counted,
                      size,
                      model.experts(),
                      groups),
                 text("use at most {}", size));
  }
}

void judge_groups(Judge& judge) {
  const ModelConfig& model = judge.model();
  const auto groups = model.moe_router_num_groups, topk = model.moe_router_group_topk;
  if (!judge.sound({"model.moe_router_num_groups", "model.moe_router_group_topk"})) return;
  if (topk && !groups) {
    judge.report("model.moe_router_group_topk",
                 text("model.moe_router_group_topk = {} without groups", *topk),
                 "set model.moe_router_num_groups");
  }
  if (groups && model.experts() % *groups != 0) {
    judge.report("model.moe_router_num_groups",
                 text("model.num_moe_experts = {} is not divisible by model.moe_router_num_groups "
                      "= {}",
                      model.experts(),
                      *groups),
                 "use a number of groups that divides the experts");
  }
  if (groups && topk && *topk > *groups) {
    judge.report("model.moe_router_group_topk",
                 text("model.moe_router_group_topk = {} of model.moe_router_num_groups = {}",
                      *topk,
                      *groups),
                 text("use at most {}", *groups));
  }
  if (groups && model.experts() > 0 && model.experts() % *groups == 0) judge_group_sizes(judge);
}

void judge_padding(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.moe_router_padding_for_quantization) return;
  const Dispatcher dispatcher = model.moe_token_dispatcher_type;
  if (!is_quantized(model)) {
    judge.report("model.moe_router_padding_for_quantization",
                 "model.moe_router_padding_for_quantization without model.fp8 or model.fp4",
                 "set one of them, or leave the padding out");
  }
  if (dispatcher == Dispatcher::AllGather || dispatcher == Dispatcher::AllToAllSeq) {
    judge.report("model.moe_router_padding_for_quantization",
                 text("model.moe_router_padding_for_quantization with "
                      "model.moe_token_dispatcher_type = {}",
                      word(dispatcher)),
                 "use the alltoall or flex dispatcher");
  }
}

constexpr Rule kRouterRules[] = {
    {.id = "TC-10",
     .kind = Kind::Warning,
     .when = "32 experts or more and model.moe_router_dtype is null",
     .then = "warned",
     .why = "Scores of many experts lie close together, and bf16 confuses them. Weft's router is "
            "always fp32; the warning is for those who carry the config elsewhere.",
     .example = "model.num_moe_experts=32 model.moe_ffn_hidden_size=16",
     .judge = judge_router_dtype},
    {.id = "W30",
     .when = "model.moe_router_topk above the number of experts",
     .then = "refused",
     .why = "A token goes to different experts.",
     .example = "model.num_moe_experts=4 model.moe_router_topk=5",
     .judge = judge_topk},
    {.id = "TC-37",
     .when = "model.moe_expert_capacity_factor with sinkhorn or quantile_balancing",
     .then = "refused",
     .why = "Rows beyond the capacity are dropped by their probability, which these two replace.",
     .example = "model.num_moe_experts=4 model.moe_expert_capacity_factor=1 "
                "model.moe_router_load_balancing_type=sinkhorn",
     .judge = judge_capacity_balance},
    {.id = "TC-40",
     .when = "model.moe_router_load_balancing_type and model.moe_aux_loss_coeff differ in length",
     .then = "refused",
     .why = "Each loss has its own coefficient.",
     .example = "model.num_moe_experts=4 "
                "model.moe_router_load_balancing_type=[aux_loss,seq_aux_loss]",
     .judge = judge_coefficients},
    {.id = "TC-41",
     .when = "model.moe_router_enable_expert_bias with softmax scores",
     .then = "refused",
     .why = "The bias moves one expert's score without the others'; under softmax they all move.",
     .example = "model.num_moe_experts=4 model.moe_router_enable_expert_bias=true",
     .judge = judge_bias_score},
    {.id = "TC-42",
     .when = "model.moe_router_topk = 1 with softmax after the selection, without sinkhorn",
     .then = "refused",
     .why = "Softmax over one logit is 1 whatever the logit is, so no gradient reaches the router.",
     .example = "model.num_moe_experts=4 model.moe_router_topk=1",
     .judge = judge_one_expert},
    {.id = "TC-43",
     .when = "model.moe_router_group_topk without groups or above their number, experts that do "
             "not divide into them, or groups with too few experts",
     .then = "refused",
     .why = "A token picks groups of equal size first, experts in them second.",
     .example = "model.num_moe_experts=4 model.moe_router_group_topk=1",
     .judge = judge_groups},
    {.id = "TC-46",
     .when =
         "model.moe_router_padding_for_quantization without fp8 or fp4, or with the allgather or "
         "alltoall_seq dispatcher",
     .then = "refused",
     .why = "The router pads its map so that every expert's rows fill the blocks of the low "
            "precision; these dispatchers do not read the padded map.",
     .example = "model.num_moe_experts=4 model.moe_router_padding_for_quantization=true",
     .judge = judge_padding},
};

}  // namespace

std::span<const Rule> router_rules() { return kRouterRules; }

}  // namespace weft::rules
