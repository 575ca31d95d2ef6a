// Order of layouts whose prices differ less than the price's accuracy: the simpler one first.
#pragma once

#include <vector>

#include "weft/plan/search/search.h"

namespace weft::plan {

// Complexity of a layout: axes above 1, and modes beyond a plain run (overlap, delayed weight
// gradients, graphs, recomputation, host memory).
int parts_of(const LayoutChoice& choice, const LayoutWriter& writer);

// Reorders `sorted` (fastest first). Among layouts within a tie of the fastest remaining one, the
// next is the one with fewest parts. Further criteria in order: hybridep if NVLink joins more than
// a machine (advice A9: overlap can hide a dispatcher's cost from the price); least memory; speed.
std::vector<PricedLayout> simpler_first(std::vector<PricedLayout> sorted, const LayoutSpace& space);

// True if the price cannot separate two layouts.
bool are_tied(const PricedLayout& one, const PricedLayout& other);

}  // namespace weft::plan
