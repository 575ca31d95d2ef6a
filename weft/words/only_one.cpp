#include "weft/words/only_one.h"

#include <algorithm>
#include <array>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

// One of the two ways.
struct Way {
  std::string_view key;
  std::string_view value = {};  // value that says it; empty: any but the default
  std::string_view off = {};    // value after being overridden; empty: the default

  bool is_changed(const Config& config) const {
    const Field& field = *find_field(key);
    return value.empty() ? !is_default(field, config) : value_text(field, config) == value;
  }
  // True, for a said key, if its value does more than turn it off.
  bool is_on(const Config& config) const {
    const std::string now = value_text(*find_field(key), config);
    if (!value.empty()) return now == value;
    return now != "null" && now != "false" && now != "0" && now != "\"\"" && !now.empty();
  }
};
using Pair = std::array<Way, 2>;

// Pairs of which rules ask to keep one.
constexpr Pair kPairs[] = {
    {{{"train.train_iters"}, {"train.train_samples"}}},
    {{{"scheduler.lr_warmup_iters"}, {"scheduler.lr_warmup_samples"}}},
    {{{"scheduler.lr_warmup_iters"}, {"scheduler.lr_warmup_fraction"}}},
    {{{"scheduler.lr_warmup_samples"}, {"scheduler.lr_warmup_fraction"}}},
    {{{"scheduler.lr_decay_iters"}, {"scheduler.lr_decay_samples"}}},
    {{{"scheduler.lr_wsd_decay_iters"}, {"scheduler.lr_wsd_decay_samples"}}},
    {{{"model.bf16"}, {"model.fp16"}}},
    {{{"optimizer.bf16"}, {"optimizer.fp16"}}},
    {{{"model.bf16"}, {"model.params_dtype", "fp16"}}},
    {{{"model.fp16"}, {"model.params_dtype", "bf16"}}},
    {{{"model.fp8"}, {"model.fp4"}}},
    {{{"dataset.packed_sequence_size"}, {"dataset.pack_sequences_in_batch"}}},
    {{{"ddp.num_buckets"}, {"ddp.bucket_size"}}},
    {{{"ddp.num_buckets"}, {"comm_overlap.bucket_size"}}},
    {{{"model.moe_deepep_num_sms"}, {"model.moe_hybridep_num_sms"}}},
    {{{"model.moe_deepep_num_sms"}, {"model.moe_flex_dispatcher_num_sms"}}},
    {{{"model.moe_hybridep_num_sms"}, {"model.moe_flex_dispatcher_num_sms"}}},
    {{{"model.pipeline_model_parallel_layout"}, {"model.num_layers_in_first_pipeline_stage"}}},
    {{{"model.pipeline_model_parallel_layout"}, {"model.num_layers_in_last_pipeline_stage"}}},
    {{{"model.pipeline_model_parallel_layout"}, {"model.account_for_embedding_in_pipeline_split"}}},
    {{{"model.pipeline_model_parallel_layout"}, {"model.account_for_loss_in_pipeline_split"}}},
    {{{"model.fine_grained_activation_offloading"}, {"model.cpu_offloading"}}},
    {{{"model.recompute_granularity"}, {"model.cpu_offloading"}}},
    {{{"model.moe_expert_rank_capacity_factor"}, {"model.moe_pad_expert_input_to_capacity"}}},
    {{{"comm_overlap.overlap_p2p_comm", "true", "false"},
      {"comm_overlap.batch_p2p_comm", "true", "false"}}},
    {{{"model.overlap_dispatch_backward_with_experts_wgrad"},
      {"comm_overlap.overlap_moe_expert_parallel_comm", "true"}}},
    {{{"model.overlap_dispatch_backward_with_experts_wgrad"},
      {"comm_overlap.delay_wgrad_compute"}}},
};

std::string set_text(const Field& field, const Config& config) {
  return text("{}={}", field.key, shown(value_text(field, config)));
}

}  // namespace

std::vector<Displaced> displaced(const Config& config,
                                 const std::function<bool(std::string_view key)>& is_said) {
  std::vector<Displaced> all;
  const auto look = [&](const Way& said, const Way& other) {
    if (!is_said(said.key) || is_said(other.key)) return;
    if (!said.is_on(config) || !other.is_changed(config)) return;
    if (std::ranges::find(all, other.key, &Displaced::key) != all.end()) return;
    const Field& field = *find_field(other.key);
    std::string off(other.off.empty() ? field.initial : other.off);
    if (off == "\"\"") off.clear();  // empty text in YAML
    all.push_back({.key = field.key,
                   .value = std::move(off),
                   .message = text("{} takes the place of {}, which was set before the words: only "
                                   "one of the two holds",
                                   set_text(*find_field(said.key), config),
                                   set_text(field, config))});
  };
  for (const auto& [one, other] : kPairs) {
    look(one, other);
    look(other, one);
  }
  return all;
}

Finding finding_of(Displaced one) {
  return {.id = "W146",
          .key = std::move(one.key),
          .from = nullptr,
          .to = nullptr,
          .message = std::move(one.message),
          .fix = ""};
}

void displace_others(Ledger& ledger) {
  const auto is_said = [&](std::string_view key) { return ledger.has_claim(key); };
  for (Displaced& one : displaced(ledger.config(), is_said)) {
    CHECK(ledger.assume(one.key, one.value), "{} cannot be {}", one.key, one.value);
    const Finding said = finding_of(std::move(one));
    ledger.warn(said.id, said.key, said.message, said.fix);
  }
}

}  // namespace weft::words
