// Router of a MoE layer, and its experts.
#pragma once

#include "weft/block/block.h"
#include "weft/block/dispatch.h"

namespace weft::block {

// Way of a layer's tokens to its experts.
struct Routing {
  Dispatch dispatch = {};
  RowTally tally = {};
  bool drops_slots = false;  // slots beyond an expert's capacity are dropped
};

// norm choose
Block route(const Stream& stream, const Experts& experts, const Routing& routing = {});

// arrange fc1 act fc2, over the received rows
Block experts(const Stream& stream, const Experts& experts, const Dispatch& dispatch = {});

}  // namespace weft::block
