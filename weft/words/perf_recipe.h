// Which recipe the harness's flags mean.
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
  // Of the recipe, where it was made for another number than asked.
  std::optional<std::int64_t> other_gpus;
};

// A name that can be run, and what Megatron's harness calls it: its own flat recipes, and the
// training recipes that --use_recipes asks for, may have the same name there.
struct Offered {
  enum class Origin { Harness, Training };
  std::string name;
  std::string known_as;
  Origin origin = Origin::Harness;
};

// `{recipe}_{task}_{n}gpu_{gpu}_{precision}[_{variant}]` among those of the origin asked for, or of
// the other where a model has none of it. Where that number of GPUs is missing: the harness's own
// choice for some models, else the largest. ConfigError where there is none, or the flags do not
// say enough.
PerfRecipe choose_perf_recipe(std::span<const Offered> offered, const HarnessSelection& selection);

// A recipe made for `gpus` keeps its work a rank on the GPUs asked for: the global batch follows
// the data-parallel ranks, unless a word set it. `recipe` is the config before the words.
void scale_batch(const config::Config& recipe,
                 std::int64_t gpus,
                 const HarnessSelection& selection,
                 Ledger& ledger);

}  // namespace weft::words
