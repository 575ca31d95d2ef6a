#include "weft/plan/hardware/rate_fit.h"

#include <gtest/gtest.h>

namespace weft::plan {
namespace rate_fit_test {

FitRow row(double a, double b, double c, double seconds) {
  return {.amounts = {a, b, c}, .seconds = seconds};
}

TEST(RateFit, FindsTheSecondsOfEachAmount) {
  const auto seconds = [](double a, double b, double c) { return 2e-12 * a + 3e-9 * b + 1e-6 * c; };
  std::vector<FitRow> rows;
  for (const auto& [a, b, c] : {std::array{1e9, 1e6, 2.0},
                                std::array{4e9, 1e5, 1.0},
                                std::array{2e8, 3e6, 7.0},
                                std::array{5e9, 5e6, 3.0}}) {
    rows.push_back(row(a, b, c, seconds(a, b, c)));
  }
  const auto found = fit_seconds(rows);
  EXPECT_NEAR(found[0], 2e-12, 1e-16);
  EXPECT_NEAR(found[1], 3e-9, 1e-13);
  EXPECT_NEAR(found[2], 1e-6, 1e-10);
}

TEST(RateFit, NothingTakesLessThanNoTime) {
  // More of the second amount goes with less time: the best fit leaves it out.
  const auto found = fit_seconds({row(1, 4, 0, 1), row(2, 2, 0, 2.1), row(4, 1, 0, 4.2)});
  EXPECT_GT(found[0], 0.9);
  EXPECT_EQ(found[1], 0);
  EXPECT_EQ(found[2], 0) << "no row has any of it";
}

TEST(RateFit, WhatCannotBeToldApartIsOneOfTheTwo) {
  const auto found = fit_seconds({row(1, 1, 0, 3), row(2, 2, 0, 6)});
  EXPECT_NEAR(found[0] + found[1], 3, 1e-9);
  EXPECT_EQ(fit_seconds({}), (std::array<double, kFitted>{}));
}

}  // namespace rate_fit_test
}  // namespace weft::plan
