// Next steps to try: at most three single changes, in the guide's order.
//
// A gain is never a constant. It is the simulated gain of the change at this run's node costs, or
// the upper limit of the measured loss. A change is left out if rules refuse it, this build lacks
// it, or its gain is below 1 % of the step. A change that makes a run fit is always offered.
#pragma once

#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/report/report.h"
#include "weft/report/what_if.h"

namespace weft::report {

// Usable share of GPU memory: the allocator, the communication library and uneven routing need the
// rest.
inline constexpr double kTightMemory = 0.9;

// Facts for ideas; nullptr: unknown.
struct NextFacts {
  const Report& report;                 // without `next`
  const config::Config* run = nullptr;  // settled by the rules
  const WhatIf* what_if = nullptr;
  std::optional<plan::NominalRates> rates = std::nullopt;  // rates that fit the run
};

std::vector<Suggestion> next_to_try(const NextFacts& facts);

// A change to try, with its possible gain before rules and simulator are asked.
struct Idea {
  Phase phase = Phase::Retune;
  std::vector<std::string> words;
  double at_most_ms = 0;  // upper limit; the simulator may only lower it
  enum class Ask { Simulator, Nobody, Known } ask = Ask::Nobody;  // Known: at_most_ms is the gain
  std::string because, rule;
};

// True if most of this communication is hidden, so it already overlaps with compute. A foreign
// trace does not say which options are on.
bool is_hidden_already(const NextFacts& facts, const std::string& kind);

// Ideas by wall; each in the file of its name.
std::vector<Idea> communication_ideas(const NextFacts& facts);
std::vector<Idea> operation_ideas(const NextFacts& facts);
std::vector<Idea> compute_ideas(const NextFacts& facts);
std::vector<Idea> pipeline_ideas(const NextFacts& facts);
// Suggestions about memory and about missing facts; they need no judgement.
std::vector<Suggestion> fit_suggestions(const NextFacts& facts);
std::vector<Suggestion> profile_suggestions(const NextFacts& facts);

}  // namespace weft::report
