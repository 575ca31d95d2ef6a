#include "weft/rules/parallel/overlap_modes.h"

#include <algorithm>
#include <initializer_list>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/derive/memory/holding.h"
#include "weft/derive/memory/parameter_buffers.h"
#include "weft/derive/parameter_list.h"
#include "weft/derive/pipeline.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// Mode before its deciding rule is known.
struct Asked {
  const char* name;
  std::vector<std::string_view> keys;  // the last one holds the effective value
  std::string number = "";             // appended if it is on
  std::string idle = "";               // why it has no effect although it is asked for
};

std::int64_t dp_of(const Config& config) {
  const grid::Layout layout = derive::layout_of(config);
  return layout.world / (layout.tp * layout.cp * layout.pp);
}

// True for a switch that is on, or a number of parts above one.
bool is_on(const Config& config, std::string_view key) {
  const base::Json value = find_field(key)->get(config);
  return value.is_number() ? value > base::Json(1) : value == base::Json(true);
}

// Last finding on these keys; nullptr: none.
const Finding* last_word(const std::vector<Finding>& findings,
                         const std::vector<std::string_view>& keys) {
  const Finding* last = nullptr;
  for (const Finding& finding : findings) {
    if (std::ranges::find(keys, finding.key) != keys.end()) last = &finding;
  }
  return last;
}

bool is_default_everywhere(const Config& config, const std::vector<std::string_view>& keys) {
  return std::ranges::all_of(keys, [&](std::string_view key) {
    return is_default(*find_field(key), config);
  });
}

constexpr std::string_view kExpertOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";
constexpr std::string_view kDelayed = "comm_overlap.delay_wgrad_compute";

// True for expert-parallel overlap left to the run; delayed weight gradients are part of it.
bool is_left_to_the_run(const Config& config, const Asked& asked) {
  const std::string_view key = asked.keys.back();
  return config.comm_overlap.overlap_moe_expert_parallel_comm.automatic &&
         config.runtime.schedule.empty() && (key == kExpertOverlap || key == kDelayed);
}

OverlapMode settle(const Verdict& verdict, const Asked& asked) {
  if (is_left_to_the_run(verdict.config, asked)) {
    std::string why =
        "decided in the run's first steps: it measures the plain order, overlap, and "
        "overlap with delayed weight gradients, and goes on with the fastest";
    if (!asked.number.empty()) why += text("; {}", asked.number);
    return {.name = asked.name, .on = false, .automatic = true, .why = std::move(why)};
  }
  const bool set = is_on(verdict.config, asked.keys.back());
  const Finding* rule = last_word(verdict.automatic, asked.keys);
  // Off although a key asks for it: a warning gave the reason.
  if (rule == nullptr && !set) rule = last_word(verdict.warnings, asked.keys);
  OverlapMode mode{.name = asked.name,
                   .on = set && asked.idle.empty(),
                   .automatic = false,
                   .why = ""};
  if (rule != nullptr) {
    mode.why = text("{}: {}", rule->id, rule->message);
  } else if (set) {
    mode.why = is_default_everywhere(verdict.config, asked.keys) ? "on by default" : "asked for";
  } else {
    mode.why =
        is_default_everywhere(verdict.config, asked.keys) ? "off by default" : "asked to be off";
  }
  if (set && !asked.idle.empty()) mode.why += text(", but {}", asked.idle);
  if (mode.on && !asked.number.empty()) mode.why += text("; {}", asked.number);
  return mode;
}

// Without a pipeline, the first forward and the last backward of a step have no partner.
std::string partners(const Config& config) {
  const ModelConfig& model = config.model;
  const std::int64_t batches = derive::micro_batches(config.train, dp_of(config));
  if (model.pipeline_model_parallel_size == 1) {
    return text("{} of {} {} a partner",
                batches - 1,
                base::counted(batches, "micro-batch"),
                batches == 2 ? "has" : "have");
  }
  return text("{} over pp = {} and vpp = {}",
              base::counted(batches, "micro-batch"),
              model.pipeline_model_parallel_size,
              derive::virtual_stages(model));
}

// Ranks that sum gradients: those with other sequences, or other parts of them.
std::string reducing_ranks(const Config& config) {
  const std::int64_t dp = dp_of(config), cp = config.model.context_parallel_size;
  return cp == 1 ? text("dp = {}", dp) : text("dp x cp = {}", dp * cp);
}

// Buckets of the first pipeline rank's dense weights: other ranks reduce while the pipeline drains.
std::int64_t dense_buckets(const Config& config) {
  const ModelConfig& model = config.model;
  const derive::Holding holding = derive::holding_of(model, 0, derive::placement_of(config));
  const std::vector<derive::ParameterSpec> all = derive::list_parameters(model, holding, {});
  std::vector<const derive::ParameterSpec*> dense;
  for (const derive::ParameterSpec& spec : all) {
    if (spec.home == derive::Home::Dense) dense.push_back(&spec);
  }
  const derive::BufferRules cut = derive::buffer_scheme(config, 0).dense;
  return std::ssize(derive::lay_out(model, holding, dense, cut).buckets);
}

std::string buckets(const Config& config) {
  const std::int64_t count = dense_buckets(config);
  const std::string all =
      text("{} over {}", base::counted(count, "bucket"), reducing_ranks(config));
  if (count > 1) return all;
  return all + ": it is complete only at the end of the backward, and several hide more";
}

std::string deferral(const Config& config) {
  const std::int64_t limit = config.comm_overlap.wgrad_deferral_limit.value_or(0);
  const bool is_all = limit == 0 || limit >= derive::micro_batches(config.train, dp_of(config));
  return is_all ? "of all micro-batches" : text("of {}", base::counted(limit, "micro-batch"));
}

std::string where(bool condition, const char* what) { return condition ? what : ""; }

std::string shared_idle(const ModelConfig& model) {
  if (!model.moe_shared_expert_intermediate_size) {
    return "there is no shared expert (model.moe_shared_expert_intermediate_size = null)";
  }
  return where(!model.tokens_travel(), "ep = 1 sends no tokens");
}

std::string slices(const Config& config) {
  return text("{} slices of the {} tokens of a micro-batch",
              config.comm_overlap.moe_token_slices,
              config.train.micro_batch_size * config.model.seq_length);
}

std::vector<Asked> expert_modes(const Config& config) {
  const ModelConfig& model = config.model;
  return {
      {.name = "expert-parallel overlap", .keys = {kExpertOverlap}, .number = partners(config)},
      {.name = "delayed weight gradients", .keys = {kDelayed}},
      {.name = "early attention release", .keys = {"model.ep_overlap_early_attn_memory_release"}},
      {.name = "dispatch backward under the experts' weight gradients",
       .keys = {"model.overlap_dispatch_backward_with_experts_wgrad"},
       .number = text("ep = {}", model.expert_model_parallel_size),
       .idle = where(!model.tokens_travel(), "ep = 1 sends no tokens")},
      {.name = "shared-expert overlap",
       .keys = {"model.moe_shared_expert_overlap"},
       .number = text("ep = {}", model.expert_model_parallel_size),
       .idle = shared_idle(model)},
      {.name = "token slices",
       .keys = {"comm_overlap.moe_token_slices"},
       .number = slices(config),
       .idle = where(!model.tokens_travel(), "ep = 1 sends no tokens")}};
}

std::vector<Asked> dense_modes(const Config& config) {
  const ModelConfig& model = config.model;
  const bool alone = dp_of(config) * model.context_parallel_size == 1;
  return {
      {.name = "pipeline exchange",
       .keys = {"comm_overlap.overlap_p2p_comm"},
       .idle = where(model.pipeline_model_parallel_size == 1, "pp = 1 has no neighbours")},
      {.name = "tensor-parallel overlap",
       .keys = {"comm_overlap.tp_comm_overlap"},
       .number = text("tp = {}", model.tensor_model_parallel_size)},
      {.name = "context-parallel overlap",
       .keys = {"comm_overlap.cp_comm_overlap"},
       .number = text("cp = {}", model.context_parallel_size),
       .idle = where(model.context_parallel_size == 1, "cp = 1 shares no sequences")},
      {.name = "gradient reduction",
       .keys = {"comm_overlap.overlap_grad_reduce", "ddp.overlap_grad_reduce"},
       .number = buckets(config),
       .idle = where(alone, "dp = 1 reduces nothing")},
      {.name = "parameter gather",
       .keys = {"comm_overlap.overlap_param_gather", "ddp.overlap_param_gather"},
       .number = buckets(config),
       .idle = alone ? "dp = 1 gathers nothing"
                     : where(!config.ddp.use_distributed_optimizer,
                             "without a distributed optimizer every rank holds all parameters")},
      {.name = "deferred embedding weight gradients",
       .keys = {"comm_overlap.defer_embedding_wgrad_compute"},
       .number = deferral(config)}};
}

}  // namespace

std::vector<OverlapMode> overlap_modes(const Verdict& verdict) {
  CHECK(verdict.legal(), "modes of a run that is refused");
  std::vector<OverlapMode> modes;
  for (const Asked& asked : expert_modes(verdict.config)) modes.push_back(settle(verdict, asked));
  for (const Asked& asked : dense_modes(verdict.config)) modes.push_back(settle(verdict, asked));
  return modes;
}

std::string to_line(const OverlapMode& mode) {
  const char* state = mode.on ? "on" : "off";
  return text("{}: {} ({})", mode.name, mode.automatic ? "auto" : state, mode.why);
}

}  // namespace weft::rules
