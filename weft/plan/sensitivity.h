// What one step in each knob would change, and what that says: whether overlap, delayed weight
// gradients and recomputation of whole layers pay.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "weft/plan/search.h"

namespace weft::plan {

// The same layout but for one knob. Another shape that is faster with other modes has those, and
// `to` names them: "2 (vpp 4)".
struct KnobStep {
  std::string knob, from, to;              // "ep", "32", "64"
  std::optional<Price> price = {};         // none: it cannot be, or does not fit
  std::optional<MemoryPrice> memory = {};  // where it is legal; by formula
  double more_bytes = 0;                   // of it than the layout itself has
  std::string why_not = {};
};

// One step up and one down on every axis, every other carrier and order, one rung of recomputation
// either way and whole layers, one of offloading and a quarter of the optimizer's state to the host
// or back, the other holder of that state, and CUDA graphs of what has fixed shapes. Then what is
// no layout: half and twice the batch, and the other formats of numbers that the GPU has.
std::vector<KnobStep> sensitivity(const LayoutSpace& space, const LayoutChoice& choice);

// An answer with its numbers.
struct PlanVerdict {
  std::string question;  // "Does expert-parallel overlap pay?"
  bool pays = false;     // by more than a tie
  double gain = 0;       // share of the step that it saves; below 0: that it costs
  std::string because;   // one or two sentences; other layouts by what differs from the best

  bool is_tie() const { return gain != 0 && std::abs(gain) <= kTie; }
};

// Of the best layout; each is asked only where there is something to answer. `search` is what found
// it.
std::vector<PlanVerdict> plan_verdicts(const LayoutSpace& space, const SearchResult& search);

}  // namespace weft::plan
