// All fitting modes of one shape, priced by formula.
#pragma once

#include <optional>
#include <vector>

#include "weft/plan/search/search.h"

namespace weft::plan {

// Result of one shape with nothing on the host.
struct ShapeOutcome {
  std::vector<PricedLayout> priced;  // fitting layouts
  std::optional<PricedLayout> best;
  // Smallest form, if the shape does not fit.
  std::optional<PricedLayout> smallest;
  // True if some order fits only with recomputation, or not at all.
  bool wants_room = false;
};
ShapeOutcome price_shape(const LayoutSpace& space, const LayoutChoice& shape);

// Prices the layout with later rungs of recomputation, except the last, which price_shape() has
// priced: slower and smaller.
std::vector<PricedLayout> price_rungs(const LayoutSpace& space, const LayoutChoice& choice);

// Lower bound of the shape's step time by formula, with unlimited memory and any offload. Uses the
// plain order and the last merged order with the last dispatcher: accurate enough to select shapes.
double least_step_ms(const LayoutSpace& space, const LayoutChoice& shape);

struct OffloadLimit {
  double limit_ms = 0;
  std::size_t most_state = 0;  // quarters of the optimizer state that may go to the host
};

// Offloading layouts of the shape that fit, keep the limit and recompute less than what fits
// without offloading. Of every order the fastest few, fastest first.
std::vector<PricedLayout> price_offloads(const LayoutSpace& space,
                                         const LayoutChoice& shape,
                                         const OffloadLimit& limit);

// Shape in its smallest modes, with the most that the host can hold.
PricedLayout smallest_of_shape(const LayoutSpace& space, const LayoutChoice& shape);

}  // namespace weft::plan
