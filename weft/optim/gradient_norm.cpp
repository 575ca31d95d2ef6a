#include "weft/optim/gradient_norm.h"

#include <algorithm>

namespace weft::optim {

double clip_scale(double norm, double limit) {
  if (limit <= 0) return 1;
  return std::min(1.0, limit / (norm + 1e-6));
}

}  // namespace weft::optim
