// Division of the ranks, and of the batch between them.
#include "weft/grid/layout.h"

#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

bool sizes_are_sound(const Judge& judge) {
  return judge.sound({"runtime.world_size",
                      "model.num_moe_experts",
                      "model.tensor_model_parallel_size",
                      "model.pipeline_model_parallel_size",
                      "model.context_parallel_size",
                      "model.expert_model_parallel_size",
                      "model.expert_tensor_parallel_size"});
}

void judge_sequence_parallel(Judge& judge) {
  if (!judge.model().sequence_parallel || judge.model().tensor_model_parallel_size > 1) return;
  judge.set("model.sequence_parallel",
            "false",
            text("model.sequence_parallel shares tokens between tensor-parallel ranks, and "
                 "model.tensor_model_parallel_size = {}",
                 judge.model().tensor_model_parallel_size));
}

void judge_expert_tensor_parallel(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.expert_tensor_parallel_size) return;
  if (model.expert_model_parallel_size > 1) {
    judge.set("model.expert_tensor_parallel_size",
              "1",
              text("experts on model.expert_model_parallel_size = {} ranks are whole unless asked "
                   "otherwise",
                   model.expert_model_parallel_size));
  } else if (model.tensor_model_parallel_size > 1) {
    judge.set("model.expert_tensor_parallel_size",
              text("{}", model.tensor_model_parallel_size),
              "without expert parallelism, experts are cut as dense layers are");
  }
}

void judge_experts_without_model(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.num_moe_experts || model.expert_model_parallel_size <= 1) return;
  judge.report("model.expert_model_parallel_size",
               text("model.expert_model_parallel_size = {} without experts",
                    model.expert_model_parallel_size),
               "set it to 1, or set model.num_moe_experts");
}

// V1, TC-8 and the expert view report the layout's own complaints.
void judge_layout(Judge& judge) {
  if (!sizes_are_sound(judge)) return;
  std::vector<std::string> complaints = grid::layout_complaints(derive::layout_of(judge.config()));
  // Without experts, both views give the same complaint.
  if (judge.model().experts() == 0 && complaints.size() > 1) complaints.resize(1);
  for (const std::string& complaint : complaints) {
    const std::size_t colon = complaint.rfind(": ");
    judge.report(
        "",
        "layout (runtime.world_size, model.*_parallel_size): " + complaint.substr(0, colon),
        colon == std::string::npos ? "" : complaint.substr(colon + 2));
  }
}

void judge_heads_by_tp(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!sizes_are_sound(judge)) return;
  const std::int64_t tp = model.tensor_model_parallel_size;
  if (model.num_attention_heads % tp == 0) return;
  judge.report("model.num_attention_heads",
               text("model.num_attention_heads = {} is not divisible by "
                    "model.tensor_model_parallel_size = {}",
                    model.num_attention_heads,
                    tp),
               text("use a tp that divides {}, or heads that are a multiple of {}",
                    model.num_attention_heads,
                    tp));
}

void judge_groups_by_tp(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!sizes_are_sound(judge) || !judge.sound({"model.num_query_groups"})) return;
  const std::int64_t tp = model.tensor_model_parallel_size, groups = model.query_groups();
  if (model.multi_latent_attention || groups % tp == 0 || tp % groups == 0) return;
  judge.report("model.num_query_groups",
               text("model.num_query_groups = {} is neither a multiple nor a divisor of "
                    "model.tensor_model_parallel_size = {}",
                    groups,
                    tp),
               text("use a tp that divides {}, or that {} divides", groups, groups));
}

// Sizes that tensor-parallel ranks divide between them.
void judge_shares_by_tp(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!sizes_are_sound(judge) || !judge.sound_section("model.")) return;
  if (!judge.sound({"train.micro_batch_size"})) return;
  const std::int64_t tp = model.tensor_model_parallel_size;
  const auto check = [&](const char* key, std::string_view what, std::int64_t count) {
    if (count % tp == 0) return;
    judge.report(
        key,
        text("{} = {} is not divisible by model.tensor_model_parallel_size = {}", what, count, tp),
        text("use a tp that divides {}, or a multiple of {}", count, tp));
  };
  if (model.sequence_parallel) {
    check("model.seq_length",
          "train.micro_batch_size * model.seq_length / cp",
          judge.config().train.micro_batch_size * model.seq_length / model.context_parallel_size);
  }
  if (model.moe_layers() < model.num_layers) {
    check("model.ffn_hidden_size", "model.ffn_hidden_size", model.dense_width());
  }
  const std::int64_t shared = derive::shared_expert_width(model);
  if (shared > 0) {
    check("model.moe_shared_expert_intermediate_size",
          "model.moe_shared_expert_intermediate_size",
          shared);
  }
}

void judge_vocabulary_by_tp(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!sizes_are_sound(judge) ||
      !judge.sound({"model.vocab_size", "model.make_vocab_size_divisible_by"})) {
    return;
  }
  const std::int64_t tp = model.tensor_model_parallel_size, padded = model.padded_vocab_size();
  if (padded % tp != 0) {
    return judge.report("model.vocab_size",
                        text("model.vocab_size = {} is not divisible by "
                             "model.tensor_model_parallel_size = {}",
                             model.vocab_size,
                             tp),
                        "pad it (model.should_pad_vocab=true), or use a multiple");
  }
  const std::int64_t each = padded / tp;
  if (model.vocab_size > (tp - 1) * each) return;
  judge.report(
      "model.make_vocab_size_divisible_by",
      text("model.vocab_size = {} is padded to {}, {} a rank of tp = {}: the last rank has "
           "nothing but padding",
           model.vocab_size,
           padded,
           each,
           tp),
      "lower model.make_vocab_size_divisible_by");
}

void judge_sequence_parallel_wanted(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.expert_model_parallel_size <= 1 || model.tensor_model_parallel_size <= 1) return;
  if (model.sequence_parallel) return;
  judge.report("model.sequence_parallel",
               text("experts (ep = {}) beside tensor parallelism (tp = {}) without "
                    "model.sequence_parallel: every tensor-parallel rank routes the same tokens",
                    model.expert_model_parallel_size,
                    model.tensor_model_parallel_size),
               "set model.sequence_parallel=true");
}

void judge_weight_shards(Judge& judge) {
  const ModelConfig& model = judge.model();
  const auto check = [&](const char* key, std::optional<std::int64_t> shards, std::int64_t ranks) {
    if (!shards || (*shards >= ranks && *shards % ranks == 0)) return;
    judge.report(key,
                 text("{} = {} over {} tensor-parallel ranks", key, *shards, ranks),
                 "use a multiple of the ranks");
  };
  if (!sizes_are_sound(judge)) return;
  check("model.tensor_parallel_num_weight_shards",
        model.tensor_parallel_num_weight_shards,
        model.tensor_model_parallel_size);
  check("model.expert_tensor_parallel_num_weight_shards",
        model.expert_tensor_parallel_num_weight_shards,
        derive::layout_of(judge.config()).etp);
}

void judge_batch(Judge& judge) {
  const std::optional<std::int64_t> dp = judge.dp();
  const TrainConfig& train = judge.config().train;
  if (!dp || !judge.sound({"train.micro_batch_size", "train.global_batch_size"})) return;
  const std::int64_t together = train.micro_batch_size * *dp;
  if (train.global_batch_size % together == 0) return;
  judge.report(
      "train.global_batch_size",
      text("train.global_batch_size = {} is not divisible by train.micro_batch_size * dp = "
           "{}*{} = {}",
           train.global_batch_size,
           train.micro_batch_size,
           *dp,
           together),
      text("use a multiple of {}", together));
}

void judge_eval_batch(Judge& judge) {
  const std::optional<std::int64_t> dp = judge.dp();
  const TrainConfig& train = judge.config().train;
  if (!dp || (!train.eval_global_batch_size && !train.eval_micro_batch_size)) return;
  if (!judge.sound_section("train.")) return;
  const std::int64_t batch = train.eval_global_batch_size.value_or(train.global_batch_size);
  const std::int64_t micro = train.eval_micro_batch_size.value_or(train.micro_batch_size);
  if (batch % (micro * *dp) == 0) return;
  judge.report(
      "train.eval_global_batch_size",
      text("evaluation batches of {} sequences are not divisible by {} a micro-batch on dp "
           "= {} ranks",
           batch,
           micro,
           *dp),
      text("use a multiple of {}", micro * *dp));
}

void judge_dp_given(Judge& judge) {
  const std::optional<std::int64_t> dp = judge.dp(), given = judge.overlap().data_parallel_size;
  if (!dp || !given || *given == *dp) return;
  judge.report("comm_overlap.data_parallel_size",
               text("comm_overlap.data_parallel_size = {}, and the layout gives {}", *given, *dp),
               "leave it out: it follows from the world and the other sizes");
}

constexpr Rule kLayoutRules[] = {
    {.id = "B2",
     .kind = Kind::Automatic,
     .when = "model.sequence_parallel with model.tensor_model_parallel_size = 1",
     .then = "model.sequence_parallel := false",
     .why = "There is nobody to share the tokens with. Megatron-Core alone refuses it (MP-1), the "
            "Bridge switches it off in silence.",
     .example = "model.sequence_parallel=true",
     .also = "MP-1",
     .judge = judge_sequence_parallel},
    {.id = "B3",
     .kind = Kind::Automatic,
     .when = "model.expert_tensor_parallel_size is null",
     .then = "1 where model.expert_model_parallel_size > 1, else tp",
     .why = "Cutting an expert makes small products smaller; spreading experts does not. "
            "Megatron-Core alone would use tp (MP-2).",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=4 "
                "train.global_batch_size=4",
     .also = "MP-2",
     .judge = judge_expert_tensor_parallel},
    {.id = "TC-4",
     .when = "model.expert_model_parallel_size > 1 without experts",
     .then = "refused",
     .why = "There is nothing to spread.",
     .example = "model.expert_model_parallel_size=2 train.global_batch_size=2",
     .judge = judge_experts_without_model},
    {.id = "V1",
     .when = "the world is no multiple of tp*pp*cp or of etp*ep*pp, or experts no multiple of ep",
     .then = "refused",
     .why =
         "Dense and expert layers see the same ranks through two grids, which share the "
         "pipelines: dp = world / (tp*cp*pp), edp = world / (etp*ep*pp). Both must be whole, and "
         "every expert-parallel rank owns equally many experts.",
     .example = "model.num_moe_experts=6 model.expert_model_parallel_size=4 "
                "train.global_batch_size=4",
     .also = "V2 TC-8 OV-07",
     .judge = judge_layout},
    {.id = "TC-1",
     .when = "model.num_attention_heads is no multiple of tp",
     .then = "refused",
     .why = "Tensor parallelism shares the heads.",
     .example = "model.num_attention_heads=4 model.tensor_model_parallel_size=8",
     .judge = judge_heads_by_tp},
    {.id = "TC-2",
     .when = "model.num_query_groups is neither a multiple nor a divisor of tp",
     .then = "refused",
     .why = "A rank holds whole groups, or a whole number of ranks shares one.",
     .example = "model.num_attention_heads=12 model.kv_channels=16 model.num_query_groups=3 "
                "model.tensor_model_parallel_size=4 model.sequence_parallel=true",
     .judge = judge_groups_by_tp},
    {.id = "W89",
     .when = "tokens of a micro-batch, or the width of a feed-forward, are no multiple of tp",
     .then = "refused",
     .why = "Tensor-parallel ranks share the channels of each product, and outside of the products "
            "the tokens (model.sequence_parallel).",
     .example = "model.tensor_model_parallel_size=4 model.sequence_parallel=true "
                "model.seq_length=62",
     .judge = judge_shares_by_tp},
    {.id = "VP-1",
     .when =
         "model.vocab_size, with its padding, is no multiple of tp, or leaves a rank nothing but "
         "padding",
     .then = "refused",
     .why = "Tensor-parallel ranks share the vocabulary, and each has some of it.",
     .example = "model.vocab_size=257 model.tensor_model_parallel_size=2 "
                "model.sequence_parallel=true",
     .judge = judge_vocabulary_by_tp},
    {.id = "MP-7",
     .kind = Kind::Warning,
     .when = "ep > 1 and tp > 1 without model.sequence_parallel",
     .then = "warned",
     .why = "Without sequence parallelism tensor-parallel ranks hold the same tokens and send each "
            "of them to the experts again.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "model.tensor_model_parallel_size=2",
     .judge = judge_sequence_parallel_wanted},
    {.id = "MP-11",
     .when = "weight shards below the tensor-parallel ranks, or no multiple of them",
     .then = "refused",
     .why = "Every rank keeps equally many shards of a weight.",
     .example = "model.tensor_model_parallel_size=4 model.tensor_parallel_num_weight_shards=6",
     .judge = judge_weight_shards},
    {.id = "W8",
     .when = "train.global_batch_size is no multiple of train.micro_batch_size * dp",
     .then = "refused",
     .why = "Every rank takes equally many micro-batches.",
     .example = "runtime.world_size=2 train.global_batch_size=3",
     .judge = judge_batch},
    {.id = "V10",
     .when = "an evaluation batch is no multiple of its micro-batch * dp",
     .then = "refused",
     .why = "Every rank takes equally many micro-batches. Sizes default to those of training.",
     .example = "train.eval_global_batch_size=3 train.eval_micro_batch_size=2",
     .judge = judge_eval_batch},
    {.id = "C36",
     .when = "comm_overlap.data_parallel_size differs from what the layout gives",
     .then = "refused",
     .why = "The size follows from the layout: dp = world / (tp*cp*pp). Megatron fills it in "
            "and crashes where it was not.",
     .example = "comm_overlap.data_parallel_size=4",
     .judge = judge_dp_given},
};

}  // namespace

std::span<const Rule> layout_rules() { return kLayoutRules; }

}  // namespace weft::rules
