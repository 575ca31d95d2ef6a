// What `weft plan MODEL ...` asks: the words and options of the command line as a question of
// layouts.
#pragma once

#include <optional>
#include <string>

#include "weft/cli/plan/plan_modes.h"
#include "weft/plan/search/layout_space.h"

namespace weft::cli {

// Each of them is simulated.
inline constexpr std::int64_t kMostShown = 1000;

// A run that the recipe is itself, on the hardware of the question.
struct OwnRun {
  std::string name;
  config::Config config;
};

struct Question {
  std::string model;               // its name
  std::optional<OwnRun> own = {};  // where the recipe has a layout
  std::string length = {};         // why sequences are as long as they are; empty: it was said
  plan::PlanAsk ask;
};

// ConfigError for everything that is wrong with it.
Question question_of(const PlanOptions& options);

// The place in the ranking that --explain names; nullopt: it has keys, or is empty.
std::optional<std::size_t> place_asked(const std::string& explain);

}  // namespace weft::cli
