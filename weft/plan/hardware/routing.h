// Distribution of rows over experts, and the share of the busiest expert-parallel rank, for which
// the others wait.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "weft/config/model_config.h"

namespace weft::plan {

// Loads of one layer's experts relative to their mean, as a run records them (expert_loads).
struct ExpertQuantiles {
  double p50 = 1, p95 = 1, max = 1;
};

// At most one of the three is set; none: even routing.
struct Routing {
  double imbalance = 1;             // given: rows of the busiest rank over the mean
  std::optional<double> skew = {};  // the n-th expert gets n^-skew of the first one's rows
  std::map<int, ExpertQuantiles> layers = {};  // measured; other layers get the mean of these

  bool is_even() const { return imbalance == 1 && !skew && layers.empty(); }
};

// Loads of `experts` experts relative to their mean, largest first.
std::vector<double> skewed_loads(double skew, std::int64_t experts);
std::vector<double> measured_loads(const ExpertQuantiles& quantiles, std::int64_t experts);

// Expected load of the busiest of `ranks` ranks over the mean, with experts dealt to ranks
// independent of load. One expert per rank: the largest load. More experts even out; a single rank
// has all.
double busiest_rank(const std::vector<double>& loads, std::int64_t ranks);

// Imbalance of a layer, rounded to a 32nd so that similar layers are priced once. Experts with a
// fixed number of rows are even under any routing.
double imbalance_of(const Routing& routing, const config::ModelConfig& model, std::int64_t layer);
// Largest imbalance over the layers.
double largest_imbalance(const Routing& routing, const config::ModelConfig& model);

}  // namespace weft::plan
