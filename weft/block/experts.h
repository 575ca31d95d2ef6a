// The router of a MoE layer and the experts that it chooses from.
#pragma once

#include "weft/block/block.h"
#include "weft/block/dispatch.h"

namespace weft::block {

// How a layer's tokens come to its experts.
struct Routing {
  Dispatch dispatch = {};
  RowTally tally = {};
  bool drops_slots = false;  // beyond an expert's capacity
};

// norm choose
Block route(const Stream& stream, const Experts& experts, const Routing& routing = {});

// arrange fc1 act fc2, over the rows that came
Block experts(const Stream& stream, const Experts& experts, const Dispatch& dispatch = {});

}  // namespace weft::block
