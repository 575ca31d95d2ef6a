// Global gradient norm and clipping.
#pragma once

namespace weft::optim {

// Factor that limits the gradient norm to `limit`; limit 0: no clipping.
double clip_scale(double norm, double limit);

}  // namespace weft::optim
