// Question of `weft plan MODEL ...`: words and options of the command line as a question about
// layouts.
#pragma once

#include <optional>
#include <string>

#include "weft/cli/plan/plan_modes.h"
#include "weft/plan/search/layout_space.h"

namespace weft::cli {

// Limit of shown layouts; each is simulated.
inline constexpr std::int64_t kMostShown = 1000;

// The recipe's own run on the hardware of the question.
struct OwnRun {
  std::string name;
  config::Config config;
  bool is_line = false;  // pasted words
};

struct Question {
  std::string model;               // name of the model
  std::optional<OwnRun> own = {};  // set if the recipe has a layout
  std::string length = {};         // reason for the sequence length; empty: the user gave it
  plan::PlanAsk ask;
};

// ConfigError with every error of the question.
Question question_of(const PlanOptions& options);

// Place in the ranking for --explain; nullopt: keys, or empty.
std::optional<std::size_t> place_asked(const std::string& explain);

}  // namespace weft::cli
