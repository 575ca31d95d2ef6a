#include "weft/words/perf_recipe.h"

#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

constexpr const char* kBatch = "train.global_batch_size";

// "fp8cs" for fp8_cs.
std::string short_precision(std::string dtype) {
  std::erase(dtype, '_');
  return dtype;
}

// v1 and v2 are the canonical recipe.
std::string variant_suffix(const std::string& variant) {
  const bool canonical = variant.empty() || variant == "v1" || variant == "v2";
  return canonical ? "" : "_" + variant;
}

// Number of GPUs that the harness prefers to the largest; 0: none.
std::int64_t preferred_gpus(const HarnessSelection& selection) {
  if (selection.recipe == "llama3_8b") return 8;
  if (selection.recipe != "qwen3_30b_a3b") return 0;
  if (selection.gpu == "h100") return 16;
  const bool eight =
      selection.gpu == "b200" || selection.gpu == "gb200" || selection.gpu == "gb300";
  return eight ? 8 : 0;
}

// Numbers of GPUs for which `{prefix}{n}{suffix}` exists, with the name to run.
std::map<std::int64_t, std::string> counts_of(std::span<const Offered> offered,
                                              Offered::Origin origin,
                                              const std::string& prefix,
                                              const std::string& suffix) {
  std::map<std::int64_t, std::string> counts;
  for (const Offered& one : offered) {
    const std::string& known = one.known_as;
    if (one.origin != origin || known.size() <= prefix.size() + suffix.size()) continue;
    if (!known.starts_with(prefix) || !known.ends_with(suffix)) continue;
    const auto count = base::parse_integer(
        known.substr(prefix.size(), known.size() - prefix.size() - suffix.size()));
    if (count && *count > 0) counts.emplace(*count, one.name);
  }
  return counts;
}

[[noreturn]] void throw_absent(std::span<const Offered> offered, const std::string& wanted) {
  std::vector<std::string> names;
  for (const Offered& one : offered) names.push_back(one.known_as);
  const auto best = wanted.size() <= 128 ? base::nearest(wanted, names) : std::nullopt;
  throw base::ConfigError(text("no recipe '{}': {}",
                               shown(wanted),
                               best ? text("did you mean '{}'?", *best)
                                    : "`weft recipes` lists them; -mr, --task, -ng, -g, -c and "
                                      "--config_variant make the name"));
}

// Data-parallel ranks of a layout; 0: invalid layout.
std::int64_t dp_of(const ModelConfig& model, std::int64_t world) {
  std::int64_t others = 1;
  for (const std::int64_t size : {model.tensor_model_parallel_size,
                                  model.pipeline_model_parallel_size,
                                  model.context_parallel_size}) {
    if (size < 1 || size > world) return 0;
    others *= size;
    if (others > world) return 0;
  }
  return world % others == 0 ? world / others : 0;
}

}  // namespace

PerfRecipe choose_perf_recipe(std::span<const Offered> offered, const HarnessSelection& selection) {
  if (selection.gpu.empty() || !selection.num_gpus) {
    throw base::ConfigError(text("-mr {}: {}",
                                 shown(selection.recipe),
                                 selection.gpu.empty() ? "say for which GPUs, as in -g h100 -ng 16"
                                                       : "say how many GPUs, as in -ng 16"));
  }
  const std::string prefix = text("{}_{}_", selection.recipe, selection.task);
  const std::string suffix = text("gpu_{}_{}{}",
                                  selection.gpu,
                                  short_precision(selection.compute_dtype),
                                  variant_suffix(selection.config_variant));
  using enum Offered::Origin;
  const Offered::Origin asked = selection.use_recipes ? Training : Harness;
  auto counts = counts_of(offered, asked, prefix, suffix);
  if (counts.empty()) {
    counts = counts_of(offered, asked == Harness ? Training : Harness, prefix, suffix);
  }
  const std::string wanted = text("{}{}{}", prefix, *selection.num_gpus, suffix);
  if (counts.empty()) throw_absent(offered, wanted);
  if (const auto exact = counts.find(*selection.num_gpus); exact != counts.end()) {
    return {.name = exact->second, .other_gpus = std::nullopt};
  }
  const auto preferred = counts.find(preferred_gpus(selection));
  const auto& [gpus, name] = preferred != counts.end() ? *preferred : *counts.rbegin();
  return {.name = name, .other_gpus = gpus};
}

void scale_batch(const Config& recipe,
                 std::int64_t gpus,
                 const HarnessSelection& selection,
                 Ledger& ledger) {
  if (ledger.has_claim(kBatch)) return;
  constexpr std::int64_t kLargest = std::int64_t{1} << 31;
  const std::int64_t batch = recipe.train.global_batch_size;
  const std::int64_t before = dp_of(recipe.model, gpus);
  const std::int64_t after = dp_of(ledger.config().model, *selection.num_gpus);
  if (before < 1 || after < 1 || batch < 1 || batch > kLargest || after > kLargest) return;
  if (batch * after % before != 0) {
    return ledger.complain(
        text("the recipe for {} GPUs has {} = {} on {} data-parallel ranks, which does not scale "
             "to {} ranks: set {}, or use a number of GPUs that is a multiple",
             gpus,
             kBatch,
             batch,
             before,
             after,
             kBatch));
  }
  const Asked asked{.typed = text("-ng {}", *selection.num_gpus),
                    .place = 0,
                    .key = "",
                    .value = std::nullopt,
                    .effect = std::nullopt,
                    .text = ""};
  ledger.imply(
      asked,
      "H15",
      kBatch,
      text("{}", batch * after / before),
      text("the recipe is for {} GPUs; the batch of {} on {} data-parallel ranks is scaled "
           "to {}",
           gpus,
           batch,
           before,
           after));
}

}  // namespace weft::words
