// Sensitivity of a layout to one step in each knob, and verdicts from it: the gain of overlap,
// delayed weight gradients and full recomputation.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "weft/plan/search/search.h"

namespace weft::plan {

// The layout with one knob changed. A shape that is faster with other modes gets these, and `to`
// names them: "2 (vpp 4)".
struct KnobStep {
  std::string knob, from, to;              // "ep", "32", "64"
  std::optional<Price> price = {};         // nullopt: impossible, or does not fit
  std::optional<MemoryPrice> memory = {};  // by formula, if legal
  double more_bytes = 0;                   // additional memory over the layout
  std::string why_not = {};
};

// Steps: one up and one down on every axis; every other dispatcher and order; one rung of
// recomputation up and down, and full; one rung of offloading; a quarter of the optimizer state to
// the host or back; the other placement of that state; CUDA graphs of constant shapes. Beyond the
// layout: half and twice the batch, and the GPU's other number formats.
std::vector<KnobStep> sensitivity(const LayoutSpace& space, const LayoutChoice& choice);

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
