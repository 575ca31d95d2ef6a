#include "weft/words/stage_layouts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

constexpr const char* kChunks = "model.virtual_pipeline_model_parallel_size";
constexpr const char* kLayout = "model.pipeline_model_parallel_layout";

// Model whose stages Megatron Bridge lays out by pp and vpp, with equal numbers of layers in all
// but the last stage.
struct StagedModel {
  std::string_view recipe;
  std::int64_t layers;
  bool unlisted_has_none;  // unlisted sizes have no layout, instead of the recipe's
};
constexpr StagedModel kStaged[] = {{"deepseek_v3", 61, false}, {"kimi_k2", 61, true}};

// Sizes that both models list: 4, 8 and 16 stages of 16, 8 and 4 layers; one stage: no layout.
struct Listed {
  std::int64_t pp, vpp;
};
constexpr std::array<Listed, 7> kListed{{{1, 1}, {4, 1}, {8, 1}, {4, 2}, {16, 1}, {8, 2}, {4, 4}}};
// Listed for Kimi-K2 only.
constexpr Listed kMoreOfKimi{2, 8};

bool is_listed(const StagedModel& model, std::int64_t pp, std::int64_t vpp) {
  const auto same = [&](const Listed& one) { return one.pp == pp && one.vpp == vpp; };
  return std::ranges::any_of(kListed, same) || (model.unlisted_has_none && same(kMoreOfKimi));
}

// "Ett|tt|tmL".
std::string stage_layout(std::int64_t layers, std::int64_t stages, std::int64_t mtp) {
  if (stages == 1) return "";
  constexpr std::int64_t kSlots = 64;  // layers, embedding and loss, over equal stages
  const std::int64_t each = kSlots / stages;
  const auto some = [](std::int64_t count, char letter) {
    return std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, count)), letter);
  };
  std::string layout = "E" + some(each, 't');
  for (std::int64_t stage = 1; stage + 1 < stages; ++stage) layout += "|" + some(each, 't');
  return layout + "|" + some(layers - each * (stages - 1), 't') + some(mtp, 'm') + "L";
}

const Asked* word_of(std::span<const Asked> asked, std::string_view name, std::string_view brief) {
  const Asked* found = nullptr;
  for (const Asked& one : asked) {
    const std::string_view typed = std::string_view(one.typed).substr(0, one.typed.find(' '));
    if (typed == name || typed == brief) found = &one;
  }
  return found;
}

void lay_out(const StagedModel& staged, const Asked& asked, Ledger& ledger) {
  const ModelConfig& model = ledger.config().model;
  const std::int64_t pp = model.pipeline_model_parallel_size;
  const std::int64_t vpp = model.virtual_pipeline_model_parallel_size.value_or(1);
  // One stage has no layout, whatever its layers.
  const bool is_known = model.num_layers == staged.layers || pp * vpp == 1;
  if (!is_known || ledger.has_claim(kLayout)) return;
  const bool listed = is_listed(staged, pp, vpp);
  if (!listed && !staged.unlisted_has_none) return;
  const std::string layout =
      listed ? stage_layout(staged.layers, pp * vpp, model.mtp_num_layers.value_or(0)) : "";
  ledger.imply(asked,
               "H19",
               kLayout,
               layout,
               text("the harness lays {} out anew for pp = {}, vpp = {}", staged.recipe, pp, vpp));
}

}  // namespace

void finish_stages(std::string_view recipe, std::span<const Asked> asked, Ledger& ledger) {
  const Asked* ranks = word_of(asked, "--pipeline_model_parallel_size", "-pp");
  const Asked* chunks = word_of(asked, "--virtual_pipeline_model_parallel_size", "-vp");
  if (ranks == nullptr && chunks == nullptr) return;
  const ModelConfig& model = ledger.config().model;
  if (model.pipeline_model_parallel_size == 1 && !ledger.has_claim(kChunks) &&
      model.virtual_pipeline_model_parallel_size.value_or(1) > 1) {
    ledger.imply(*ranks, "H19", kChunks, "null", "a pipeline of one rank has no chunks");
  }
  for (const StagedModel& staged : kStaged) {
    const bool is_it = recipe == staged.recipe ||
                       recipe.starts_with(std::string(staged.recipe) + "_pretrain_") ||
                       recipe.starts_with(std::string(staged.recipe) + "_sft_");
    if (is_it) lay_out(staged, chunks != nullptr ? *chunks : *ranks, ledger);
  }
}

}  // namespace weft::words
