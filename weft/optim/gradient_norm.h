// The global gradient norm and what clipping makes of it.
#pragma once

namespace weft::optim {

// What gradients are multiplied with so that their norm is at most `limit`; limit 0: never.
double clip_scale(double norm, double limit);

}  // namespace weft::optim
