// What to try next: at most three single changes, in the guide's order.
//
// A gain is never a constant: it is the step simulated with the change at the node costs of this
// run, or the most that the change could take away of what was measured. Changes that the rules
// refuse, that this build lacks, or that would gain less than a hundredth of the step are not
// offered; one that makes a run fit always is.
#pragma once

#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/nominal_costs.h"
#include "weft/report/report.h"
#include "weft/report/what_if.h"

namespace weft::report {

// Of a GPU's memory: the allocator, the communication library and uneven routing need the rest.
inline constexpr double kTightMemory = 0.9;

// What ideas may look at; pointers are null where it is not known.
struct NextFacts {
  const Report& report;                 // without `next`
  const config::Config* run = nullptr;  // as the rules left it
  const WhatIf* what_if = nullptr;
  std::optional<plan::NominalRates> rates = std::nullopt;  // that fit the run
};

std::vector<Suggestion> next_to_try(const NextFacts& facts);

// One change to try: what it could gain, before anybody asked the rules and the simulator.
struct Idea {
  Phase phase = Phase::Retune;
  std::vector<std::string> words;
  double at_most_ms = 0;  // the simulator may say less, never more
  enum class Ask { Simulator, Nobody, Known } ask = Ask::Nobody;  // Known: at_most_ms is the gain
  std::string because, rule;
};

// A foreign trace does not say what is switched on: communication that is hidden for the most part
// runs beside compute already.
bool is_hidden_already(const NextFacts& facts, const std::string& kind);

// By wall; of files of their names.
std::vector<Idea> communication_ideas(const NextFacts& facts);
std::vector<Idea> operation_ideas(const NextFacts& facts);
std::vector<Idea> compute_ideas(const NextFacts& facts);
std::vector<Idea> pipeline_ideas(const NextFacts& facts);
// Of memory and of what is not known yet; they need no judgement.
std::vector<Suggestion> fit_suggestions(const NextFacts& facts);
std::vector<Suggestion> profile_suggestions(const NextFacts& facts);

}  // namespace weft::report
