#include "weft/plan/hardware/rate_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace weft::plan {
namespace {

using Amounts = std::array<double, kFitted>;
using Matrix = std::array<std::array<double, kFitted + 1>, kFitted>;

bool is_in(unsigned chosen, std::size_t i) { return (chosen >> i & 1u) != 0; }

// Normal equations of the chosen amounts; the others are 0.
Matrix equations_of(const std::vector<FitRow>& rows, const Amounts& unit, unsigned chosen) {
  Matrix equations{};
  for (std::size_t i = 0; i < kFitted; ++i) {
    if (!is_in(chosen, i)) {
      equations[i][i] = 1;
      continue;
    }
    for (const FitRow& row : rows) {
      const double weight = row.amounts[i] / unit[i] / row.seconds;
      for (std::size_t j = 0; j < kFitted; ++j) {
        if (is_in(chosen, j)) equations[i][j] += weight * row.amounts[j] / unit[j];
      }
      equations[i][kFitted] += weight * row.seconds;
    }
  }
  return equations;
}

// Gaussian elimination; nullopt: two amounts are linearly dependent.
std::optional<Amounts> solve(Matrix equations) {
  for (std::size_t i = 0; i < kFitted; ++i) {
    std::size_t pivot = i;
    for (std::size_t j = i + 1; j < kFitted; ++j) {
      if (std::abs(equations[j][i]) > std::abs(equations[pivot][i])) pivot = j;
    }
    std::swap(equations[i], equations[pivot]);
    if (std::abs(equations[i][i]) < 1e-12) return std::nullopt;
    for (std::size_t j = 0; j < kFitted; ++j) {
      if (j == i) continue;
      const double factor = equations[j][i] / equations[i][i];
      for (std::size_t k = i; k <= kFitted; ++k) equations[j][k] -= factor * equations[i][k];
    }
  }
  Amounts found{};
  for (std::size_t i = 0; i < kFitted; ++i) found[i] = equations[i][kFitted] / equations[i][i];
  return found;
}

double loss_of(const std::vector<FitRow>& rows, const Amounts& unit, const Amounts& seconds) {
  double loss = 0;
  for (const FitRow& row : rows) {
    double sum = 0;
    for (std::size_t i = 0; i < kFitted; ++i) {
      if (unit[i] > 0) sum += seconds[i] * row.amounts[i] / unit[i];
    }
    loss += (sum - row.seconds) * (sum - row.seconds) / row.seconds;
  }
  return loss;
}

}  // namespace

// Tries every subset of positive amounts, which are few.
Amounts fit_seconds(const std::vector<FitRow>& rows) {
  std::vector<FitRow> used;
  Amounts unit{};
  for (const FitRow& row : rows) {
    if (row.seconds <= 0) continue;
    used.push_back(row);
    for (std::size_t i = 0; i < kFitted; ++i) unit[i] = std::max(unit[i], row.amounts[i]);
  }
  Amounts best{};
  double least = std::numeric_limits<double>::infinity();
  for (unsigned chosen = 1; chosen < 1u << kFitted; ++chosen) {
    bool has_all = true;
    for (std::size_t i = 0; i < kFitted; ++i) has_all &= !is_in(chosen, i) || unit[i] > 0;
    if (!has_all) continue;
    const std::optional<Amounts> found = solve(equations_of(used, unit, chosen));
    if (!found) continue;
    bool is_legal = true;
    for (const double seconds : *found) is_legal &= seconds >= 0;
    const double loss = is_legal ? loss_of(used, unit, *found) : least;
    if (loss >= least) continue;
    least = loss;
    best = *found;
  }
  for (std::size_t i = 0; i < kFitted; ++i) {
    if (unit[i] > 0) best[i] /= unit[i];
  }
  return best;
}

}  // namespace weft::plan
