// Recipe meant by the harness's flags.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "weft/config/config.h"
#include "weft/words/harness/harness_flags.h"
#include "weft/words/ledger.h"

namespace weft::words {

struct PerfRecipe {
  std::string name;
  // The recipe's number of GPUs, if it differs from the requested one.
  std::optional<std::int64_t> other_gpus;
};

// Runnable name and its name in Megatron's harness. There a flat recipe and a training recipe (of
// --use_recipes) may share a name.
struct Offered {
  enum class Origin { Harness, Training };
  std::string name;
  std::string known_as;
  Origin origin = Origin::Harness;
};

// Chooses `{recipe}_{task}_{n}gpu_{gpu}_{precision}[_{variant}]` from the requested origin, or from
// the other one if the model has none there. For a missing number of GPUs: the harness's own choice
// for some models, otherwise the largest. ConfigError if there is none, or the flags are ambiguous.
PerfRecipe choose_perf_recipe(std::span<const Offered> offered, const HarnessSelection& selection);

// Keeps the work per rank of a recipe made for `gpus`: the global batch scales with the
// data-parallel ranks, unless a word set it. `recipe`: the config before the words.
void scale_batch(const config::Config& recipe,
                 std::int64_t gpus,
                 const HarnessSelection& selection,
                 Ledger& ledger);

}  // namespace weft::words
