// Changes that make a model fit if no layout fits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/plan/search/search.h"

namespace weft::plan {

struct FitWay {
  std::string change;   // "512 GPUs", "h200 instead of h100"
  PricedLayout layout;  // the one with the least memory then; its memory is priced, its time is not
  std::string said;     // the layout in words
};

// Layout with the least memory; nullopt: no layout exists.
std::optional<PricedLayout> smallest_layout(const LayoutSpace& space);

// Tries offloading, if keys of the question exclude it; narrower optimizer moments, gradients or
// both, if the question leaves them open; more host memory, if only that is missing. Then the first
// helpful multiple (2, 4, ...) of the GPUs, and each helpful one of `others`. If the batch does not
// divide by more GPUs, it grows with them, and the change says so.
std::vector<FitWay> ways_to_fit(const PlanAsk& ask, const std::vector<Hardware>& others);

}  // namespace weft::plan
