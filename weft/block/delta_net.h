// Gated delta net: linear attention.
#pragma once

#include "weft/block/block.h"

namespace weft::block {

Block delta_net(const Stream& stream, const DeltaHeads& heads);

}  // namespace weft::block
