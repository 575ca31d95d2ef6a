// What would make a model fit that fits in no layout.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/plan/search.h"

namespace weft::plan {

struct FitWay {
  std::string change;   // "512 GPUs", "h200 instead of h100"
  PricedLayout layout;  // that needs least memory then; its memory is priced, its time is not
  std::string said;     // the layout in words
};

// The layout that needs least memory; none: there is none at all.
std::optional<PricedLayout> smallest_layout(const LayoutSpace& space);

// Offloading, where keys of the question keep it out; fewer bits for the optimizer's moments,
// gradients or both, where they say nothing of those; more memory of the host, where that is what
// lacks. Then the first of twice, four times and so on as many GPUs that helps, and each of
// `others` that does. Where the batch does not divide by more GPUs, it grows with them, and the
// change says so.
std::vector<FitWay> ways_to_fit(const PlanAsk& ask, const std::vector<Hardware>& others);

}  // namespace weft::plan
