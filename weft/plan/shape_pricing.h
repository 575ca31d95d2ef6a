// Every mode of one shape that fits, priced by formula.
#pragma once

#include <optional>
#include <vector>

#include "weft/plan/search.h"

namespace weft::plan {

// What one shape came to, with nothing on the host.
struct ShapeOutcome {
  std::vector<PricedLayout> priced;  // that fit
  std::optional<PricedLayout> best;
  // Where it does not fit: at its smallest.
  std::optional<PricedLayout> smallest;
  // Some order fits only where something is made again, or not at all.
  bool wants_room = false;
};
ShapeOutcome price_shape(const LayoutSpace& space, const LayoutChoice& shape);

// A layout with the rungs of recomputation after its own, but for the last, which price_shape() has
// priced: slower, and smaller.
std::vector<PricedLayout> price_rungs(const LayoutSpace& space, const LayoutChoice& choice);

// No layout of the shape is faster, by formula, however much goes to the host: its time where
// memory is no matter. Of the plain order and the last of the others, by the last carrier: near
// enough to tell shapes that are worth a look.
double least_step_ms(const LayoutSpace& space, const LayoutChoice& shape);

struct OffloadLimit {
  double limit_ms = 0;
  std::size_t most_state = 0;  // quarters of the optimizer's state that may go to the host
};

// Its layouts with something on the host that fit, take no longer than the limit and make less
// again than what fits without: of every order the fastest few, fastest first.
std::vector<PricedLayout> price_offloads(const LayoutSpace& space,
                                         const LayoutChoice& shape,
                                         const OffloadLimit& limit);

// The shape with as much on the host as there is room for, in its smallest modes.
PricedLayout smallest_of_shape(const LayoutSpace& space, const LayoutChoice& shape);

}  // namespace weft::plan
