// Memory of a priced run by component.
#pragma once

#include <vector>

#include "weft/plan/price/price.h"

namespace weft::plan {

// Memory that the pieces of layers declare as kept, for the micro-batches in flight in the order of
// turns: the peak of the schedule, without its graph. A test bounds its distance from `weft
// memory`.
MemoryPrice price_memory(const config::Config& config,
                         const Hardware& hardware,
                         const Routing& routing,
                         MemoryBook& book);
MemoryPrice price_memory(const config::Config& config,
                         const Hardware& hardware,
                         const Routing& routing = {});

// Memory of every pipeline rank.
std::vector<MemoryPrice> price_ranks(const config::Config& config,
                                     const Hardware& hardware,
                                     const Routing& routing,
                                     MemoryBook& book);

// Peak bytes kept by a pipeline rank's layers for the micro-batches in flight while it works on
// that chunk; even routing.
double kept_in_chunk(const config::Config& config, int rank, std::size_t chunk, MemoryBook& book);

}  // namespace weft::plan
