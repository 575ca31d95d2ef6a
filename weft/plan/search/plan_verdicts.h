// Verdicts on the best layout: overlap, delayed weight gradients, full recomputation, offloading.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "weft/plan/search/search.h"

namespace weft::plan {

// An answer with its numbers.
struct PlanVerdict {
  std::string question;  // "Does expert-parallel overlap pay?"
  bool pays = false;     // by more than a tie
  double gain = 0;       // saved share of the step; negative: lost
  // One or two sentences; names other layouts by their difference from the best.
  std::string because;

  bool is_tie() const { return gain != 0 && std::abs(gain) <= kTie; }
};

// Verdicts on the best layout, each only if the question applies. `search`: the search that found
// it.
std::vector<PlanVerdict> plan_verdicts(const LayoutSpace& space, const SearchResult& search);

}  // namespace weft::plan
