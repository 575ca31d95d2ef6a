#include "weft/plan/cost/time_text.h"

#include <cmath>

#include "weft/base/text.h"

namespace weft::plan {

using base::text;

std::string time_text(double ms) {
  constexpr double kNothing = 5e-4, kInSeconds = 1e5;
  if (std::abs(ms) < kNothing) return "0 ms";
  if (std::abs(ms) >= kInSeconds) return rate_text(ms / 1e3) + " s";
  return rate_text(ms) + " ms";
}

std::string rate_text(double rate) {
  const double size = std::abs(rate);
  if (size >= 1000) return text("{:.0f}", rate);
  return size >= 0.01 ? text("{:.4g}", rate) : text("{:.5f}", rate);
}

}  // namespace weft::plan
