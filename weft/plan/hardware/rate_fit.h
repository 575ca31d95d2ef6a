// Fit of machine rates: seconds = sum of amounts, each over its rate.
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

// Seconds per unit of each amount, none negative, by least squares. Rows weigh by their seconds:
// ten nodes of 1 ms count like one of 10 ms. An amount without rows gets 0.
std::array<double, kFitted> fit_seconds(const std::vector<FitRow>& rows);

}  // namespace weft::plan
