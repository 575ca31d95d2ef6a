// Rates of a machine from what several things took: seconds = sum of amounts, each over its rate.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace weft::plan {

inline constexpr std::size_t kFitted = 3;

struct FitRow {
  std::array<double, kFitted> amounts{};
  double seconds = 0;
};

// Seconds for one of each amount, none below 0, by least squares in which a row counts by its
// seconds: ten nodes of 1 ms as much as one of 10 ms. An amount that no row has gets 0.
std::array<double, kFitted> fit_seconds(const std::vector<FitRow>& rows);

}  // namespace weft::plan
