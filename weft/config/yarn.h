// YaRN's magnitude: factor on attention when positions are stretched by `factor`.
#pragma once

#include <cmath>

namespace weft::config {

inline double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

}  // namespace weft::config
