// Sequences: split across context-parallel ranks, and as long as the data's.
#include <algorithm>

#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

bool is_shared(const Judge& judge) {
  return judge.sound({"model.context_parallel_size"}) && judge.model().context_parallel_size > 1;
}

void judge_halves(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!is_shared(judge) || !judge.sound({"model.seq_length"})) return;
  const std::int64_t pieces = 2 * model.context_parallel_size;
  if (model.seq_length % pieces == 0) return;
  judge.report("model.seq_length",
               text("model.seq_length = {} is not divisible by 2*cp = 2*{} = {}",
                    model.seq_length,
                    model.context_parallel_size,
                    pieces),
               text("use a multiple of {}", pieces));
}

void judge_exchange_list(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!judge.sound({"model.num_layers"})) return;
  const std::size_t words = model.cp_comm_type.size();
  if (words == 1 || words == static_cast<std::size_t>(model.num_layers)) return;
  judge.report(
      "model.cp_comm_type",
      text("model.cp_comm_type has {} words for model.num_layers = {}", words, model.num_layers),
      "give one word, or one a layer");
}

void judge_hierarchy(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!is_shared(judge) || !contains(model.cp_comm_type, CpComm::AllToAllP2p)) return;
  if (!judge.sound({"model.hierarchical_context_parallel_sizes"})) return;
  const auto& sizes = model.hierarchical_context_parallel_sizes;
  const std::int64_t cp = model.context_parallel_size;
  std::int64_t product = sizes.empty() ? 0 : 1;
  for (const std::int64_t size : sizes) {
    if (product <= cp) product *= size;  // beyond cp it is wrong already, and could overflow
  }
  if (product == cp) return;
  judge.report(
      "model.hierarchical_context_parallel_sizes",
      text("model.cp_comm_type = a2a+p2p needs the factors of model.context_parallel_size = "
           "{}, and model.hierarchical_context_parallel_sizes = [{}]",
           cp,
           fmt::join(sizes, ",")),
      text("give sizes whose product is {}", cp));
}

// Number of ranks that exchange heads in some layer.
std::int64_t head_ranks(const ModelConfig& model) {
  if (contains(model.cp_comm_type, CpComm::AllToAll)) return model.context_parallel_size;
  const auto& sizes = model.hierarchical_context_parallel_sizes;
  return contains(model.cp_comm_type, CpComm::AllToAllP2p) && !sizes.empty() ? sizes.front() : 1;
}

void judge_exchanged_heads(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!is_shared(judge) || !judge.sound_section("model.")) return;
  const std::int64_t ranks = head_ranks(model), tp = model.tensor_model_parallel_size;
  const bool latent = model.multi_latent_attention;
  const std::int64_t groups = latent ? model.num_attention_heads : model.query_groups();
  // If tp exceeds the number of key/value heads, each rank has one.
  const std::int64_t own = std::max<std::int64_t>(1, groups / tp);
  if (own % ranks == 0) return;
  judge.report("model.cp_comm_type",
               text("{} ranks exchange heads, and each has {} of {} = {}{}",
                    ranks,
                    own,
                    latent ? "model.num_attention_heads" : "model.num_query_groups",
                    groups,
                    tp > 1 ? text(" (tp = {})", tp) : ""),
               text("use p2p or all_gather, or a number of ranks that divides {}", own));
}

void judge_data_length(Judge& judge) {
  const auto data = judge.config().dataset.seq_length;
  if (!data || *data == judge.model().seq_length) return;
  if (!judge.sound({"dataset.seq_length", "model.seq_length"})) return;
  judge.report(
      "dataset.seq_length",
      text("dataset.seq_length = {} and model.seq_length = {}", *data, judge.model().seq_length),
      "leave dataset.seq_length out: it follows the model's");
}

void judge_delta_heads(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.linear_attention_freq || !judge.sound_section("model.")) return;
  const std::int64_t keys = model.linear_num_key_heads, values = model.linear_num_value_heads;
  const std::int64_t tp = model.tensor_model_parallel_size, cp = model.context_parallel_size;
  const auto check = [&](const char* key, std::int64_t heads) {
    if (heads % (tp * cp) == 0) return;
    judge.report(
        key,
        text("{} = {} is not divisible by tp*cp = {}*{} = {}", key, heads, tp, cp, tp * cp),
        text("use a multiple of {}", tp * cp));
  };
  check("model.linear_num_key_heads", keys);
  check("model.linear_num_value_heads", values);
  if (values % keys == 0) return;
  judge.report("model.linear_num_value_heads",
               text("model.linear_num_value_heads = {} is not divisible by "
                    "model.linear_num_key_heads = {}",
                    values,
                    keys),
               text("use a multiple of {}", keys));
}

void judge_packed_stages(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!judge.config().dataset.pack_sequences_in_batch) return;
  if (model.pipeline_model_parallel_size <= 1) return;
  judge.set("model.variable_seq_lengths",
            "true",
            text("dataset.pack_sequences_in_batch gives pp = {} stages micro-batches of different "
                 "lengths",
                 model.pipeline_model_parallel_size));
}

void judge_gathered_lengths(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.variable_seq_lengths) return;
  if (model.moe_token_dispatcher_type != Dispatcher::AllGather) return;
  judge.report("model.variable_seq_lengths",
               "model.variable_seq_lengths with model.moe_token_dispatcher_type = allgather",
               "use the alltoall or flex dispatcher");
}

constexpr Rule kContextRules[] = {
    {.id = "V4",
     .when = "cp > 1 and model.seq_length is no multiple of 2*cp",
     .then = "refused",
     .why =
         "Each rank takes one piece from the front of the sequence and one from its end, so that "
         "causal attention costs all of them the same.",
     .example = "model.context_parallel_size=2 model.seq_length=62",
     .judge = judge_halves},
    {.id = "V7",
     .when = "model.cp_comm_type is a list, and not one word a layer",
     .then = "refused",
     .why = "One word serves every layer; a list must say it for each.",
     .example = "model.context_parallel_size=2 model.cp_comm_type=[p2p,a2a,p2p]",
     .judge = judge_exchange_list},
    {.id = "V8",
     .when =
         "a2a+p2p without model.hierarchical_context_parallel_sizes, or their product is not cp",
     .then = "refused",
     .why = "The inner ranks exchange heads, the outer ones pass keys and values on; without sizes "
            "Megatron once left context parallelism off in silence.",
     .example = "model.context_parallel_size=4 model.cp_comm_type=a2a+p2p",
     .judge = judge_hierarchy},
    {.id = "W91",
     .when = "a2a or a2a+p2p among more ranks than a rank has key and value heads, or no divisor",
     .then = "refused",
     .why = "Ranks that exchange heads for tokens are left with an equal share of the heads, keys "
            "and values with their queries.",
     .example = "model.context_parallel_size=4 model.cp_comm_type=a2a "
                "model.num_attention_heads=4 model.num_query_groups=2",
     .judge = judge_exchanged_heads},
    {.id = "V9",
     .when = "dataset.seq_length is set and differs from model.seq_length",
     .then = "refused",
     .why = "The model takes the sequences that the data gives. Null follows the model.",
     .example = "dataset.seq_length=128",
     .judge = judge_data_length},
    {.id = "TC-11",
     .when = "heads of a gated delta net that tp*cp or, of values, the key heads do not divide",
     .then = "refused",
     .why = "Its heads are shared by tensor- and by context-parallel ranks; every key head serves "
            "equally many value heads.",
     .example = "model.linear_attention_freq=4 model.linear_num_key_heads=12",
     .judge = judge_delta_heads},
    {.id = "B5",
     .kind = Kind::Automatic,
     .when = "dataset.pack_sequences_in_batch with pp > 1",
     .then = "model.variable_seq_lengths := true",
     .why = "Stages then tell each other the length before they exchange.",
     .example = "dataset.pack_sequences_in_batch=true model.pipeline_model_parallel_size=2 "
                "train.micro_batch_size=2 train.global_batch_size=2",
     .judge = judge_packed_stages},
    {.id = "TC-26",
     .when = "the allgather dispatcher with model.variable_seq_lengths",
     .then = "refused",
     .why = "Ranks gather equally many tokens from each other.",
     .example = "model.num_moe_experts=4 model.moe_token_dispatcher_type=allgather "
                "model.variable_seq_lengths=true",
     .judge = judge_gathered_lengths},
};

}  // namespace

std::span<const Rule> context_rules() { return kContextRules; }

}  // namespace weft::rules
