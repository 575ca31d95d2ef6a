// Sensitivity of a layout to one step in each knob.
#pragma once

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

}  // namespace weft::plan
