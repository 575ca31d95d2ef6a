// Which of layouts comes first whose prices differ by less than a price can tell? The simpler one.
#pragma once

#include <vector>

#include "weft/plan/search.h"

namespace weft::plan {

// How much there is to set up and to go wrong: axes that are more than 1, and modes that are not
// those of a plain run (overlap, delayed weight gradients, graphs, what runs again, what is on the
// host).
int parts_of(const LayoutChoice& choice, const LayoutWriter& writer);

// `sorted`: fastest first. Of those that are no more than a tie slower than the fastest that is
// left, the one with fewest parts is next; of several, the one by hybridep where NVLink joins more
// than a machine (advice A9: overlap may hide what another dispatcher costs, and then the price
// does not see it), then the one with least memory, then the fastest.
std::vector<PricedLayout> simpler_first(std::vector<PricedLayout> sorted, const LayoutSpace& space);

// Whether the price tells two layouts apart.
bool are_tied(const PricedLayout& one, const PricedLayout& other);

}  // namespace weft::plan
