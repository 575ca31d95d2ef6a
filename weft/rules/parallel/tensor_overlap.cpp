// Tensor-parallel collectives under GEMMs.
#include <algorithm>
#include <span>

#include "weft/rules/judge.h"
#include "weft/rules/parallel/tp_presets.h"
#include "weft/rules/parallel/tp_slots.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

constexpr std::size_t kLongestShown = 80, kMostFaults = 16;

void judge_tensor_ranks(Judge& judge) {
  const std::int64_t tp = judge.model().tensor_model_parallel_size;
  if (!judge.overlap().tp_comm_overlap || tp >= 2) return;
  judge.set("comm_overlap.tp_comm_overlap",
            "false",
            text("tensor-parallel overlap is switched off: TP size < 2 "
                 "(model.tensor_model_parallel_size = {}), so no collective is to be hidden",
                 tp),
            "raise model.tensor_model_parallel_size, or leave comm_overlap.tp_comm_overlap out");
}

void judge_shared_tokens(Judge& judge) {
  if (!judge.overlap().tp_comm_overlap || judge.model().sequence_parallel) return;
  judge.set("comm_overlap.tp_comm_overlap",
            "false",
            text("tensor-parallel overlap is switched off: sequence_parallel=False with tp = {}; "
                 "only the gathers and scatters of shared tokens can be cut into pieces",
                 judge.model().tensor_model_parallel_size),
            "set model.sequence_parallel=true");
}

void judge_preset_name(Judge& judge) {
  const std::string& name = judge.overlap().tp_comm_overlap_cfg;
  if (name.empty() || gives_slots(name) || find_tp_preset(name) != nullptr) return;
  std::vector<std::string> names;
  for (const TpPreset& preset : tp_presets()) names.emplace_back(preset.name);
  const bool is_short = name.size() <= kLongestShown;
  const auto best = is_short ? base::nearest(name, names) : std::nullopt;
  judge.report(
      "comm_overlap.tp_comm_overlap_cfg",
      text("comm_overlap.tp_comm_overlap_cfg = {}{} is none of the {} presets",
           name.substr(0, kLongestShown),
           is_short ? "" : "...",
           names.size()),
      best ? text("did you mean '{}'?", *best)
           : text("use one of {}; or give slots as one JSON object, in the words (a file is not "
                  "read): `weft check --explain {} --json` shows one under \"slots\"",
                  fmt::join(names, ", "),
                  names.front()));
}

void judge_given_slots(Judge& judge) {
  const std::string& given = judge.overlap().tp_comm_overlap_cfg;
  if (!gives_slots(given)) return;
  const std::vector<std::string> faults = read_slots(given).faults;
  const std::size_t told = std::min(faults.size(), kMostFaults);
  for (const std::string& fault : std::span(faults).first(told)) {
    judge.report("comm_overlap.tp_comm_overlap_cfg",
                 text("comm_overlap.tp_comm_overlap_cfg: {}", fault),
                 told == faults.size()
                     ? text("start from the slots of `weft check --explain {} --json`",
                            tp_presets().front().name)
                     : text("mend it; it is one of {} faults", faults.size()));
  }
}

void judge_preset(Judge& judge) {
  judge_preset_name(judge);
  judge_given_slots(judge);
}

void judge_no_preset(Judge& judge) {
  if (!judge.overlap().tp_comm_overlap || !judge.overlap().tp_comm_overlap_cfg.empty()) return;
  judge.report(
      "comm_overlap.tp_comm_overlap_cfg",
      "tensor-parallel overlap without a preset: in Megatron Bridge a library then chooses "
      "methods and SMs; Weft's own exchange has none to choose",
      "for Megatron Bridge, name a preset in comm_overlap.tp_comm_overlap_cfg, or give its "
      "slots there; Weft needs none");
}

void judge_preset_shape(Judge& judge) {
  const TpPreset* preset = find_tp_preset(judge.overlap().tp_comm_overlap_cfg);
  const ModelConfig& model = judge.model();
  if (!judge.overlap().tp_comm_overlap || preset == nullptr) return;
  if (preset->hidden == model.hidden_size && preset->tp == model.tensor_model_parallel_size) return;
  judge.report("comm_overlap.tp_comm_overlap_cfg",
               text("preset {} was tuned for model.hidden_size = {} on tp = {}, and the run has {} "
                    "on {}",
                    preset->name,
                    preset->hidden,
                    preset->tp,
                    model.hidden_size,
                    model.tensor_model_parallel_size),
               "take the preset of the shape, or none");
}

constexpr Rule kTensorOverlapRules[] = {
    {.id = "C5",
     .kind = Kind::Mended,
     .when = "comm_overlap.tp_comm_overlap with tp < 2",
     .then = "comm_overlap.tp_comm_overlap := false",
     .why = "One tensor-parallel rank has no collectives. Megatron goes on without the "
            "overlap too.",
     .example = "comm_overlap.tp_comm_overlap=true",
     .judge = judge_tensor_ranks},
    {.id = "C6",
     .kind = Kind::Mended,
     .when = "comm_overlap.tp_comm_overlap with tp >= 2 and without model.sequence_parallel",
     .then = "comm_overlap.tp_comm_overlap := false",
     .why = "With shared tokens a collective is a gather before a product and a scatter after it, "
            "and both can travel piece by piece. An all-reduce of whole tokens cannot start before "
            "the product ends.",
     .example = "comm_overlap.tp_comm_overlap=true model.tensor_model_parallel_size=2",
     .judge = judge_shared_tokens},
    {.id = "C9",
     .when =
         "comm_overlap.tp_comm_overlap_cfg is neither the name of a preset nor, as JSON, what a "
         "preset holds",
     .then = "refused",
     .why =
         "A preset says, for each of ten matrix products, how its collective is cut and how many "
         "SMs it gets. The list is closed: a name that nobody knows would mean none. Who has "
         "measured better ones gives them as the JSON of `slots` that `weft check --explain PRESET "
         "--json` prints; each fault of it is one error.",
     .example = "comm_overlap.tp_comm_overlap=true model.tensor_model_parallel_size=2 "
                "model.sequence_parallel=true comm_overlap.tp_comm_overlap_cfg=fastest",
     .judge = judge_preset},
    {.id = "C8",
     .kind = Kind::Warning,
     .when = "comm_overlap.tp_comm_overlap stays on and there is no preset",
     .then = "warned",
     .why = "Megatron's library then gives every product the same number of SMs, which fits "
            "few shapes. Weft's transfers take no SMs.",
     .example = "comm_overlap.tp_comm_overlap=true model.tensor_model_parallel_size=2 "
                "model.sequence_parallel=true",
     .judge = judge_no_preset},
    {.id = "W50",
     .kind = Kind::Warning,
     .when = "a tensor-parallel preset of another hidden size or tp",
     .then = "warned",
     .why = "The SMs of a preset were measured for one shape; for another they may take from the "
            "product what the collective does not need.",
     .example = "comm_overlap.tp_comm_overlap=true model.tensor_model_parallel_size=2 "
                "model.sequence_parallel=true "
                "comm_overlap.tp_comm_overlap_cfg=userbuffers_bf16_b200_h8192_tp2_mbs1_seqlen8192",
     .judge = judge_preset_shape},
};

}  // namespace

std::span<const Rule> tensor_overlap_rules() { return kTensorOverlapRules; }

}  // namespace weft::rules
