// How rows are spread over experts, and what of them comes to the busiest expert-parallel rank: all
// others wait for it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "weft/config/model_config.h"

namespace weft::plan {

// The loads of one layer's experts over their mean, as a run records them (expert_loads).
struct ExpertQuantiles {
  double p50 = 1, p95 = 1, max = 1;
};

// At most one of the three says something; where none does, every expert gets as many rows.
struct Routing {
  double imbalance = 1;             // rows of the busiest rank over the mean, given
  std::optional<double> skew = {};  // the n-th expert gets n^-skew of the first one's rows
  std::map<int, ExpertQuantiles> layers = {};  // measured; other layers get the mean of these

  bool is_even() const { return imbalance == 1 && !skew && layers.empty(); }
};

// The loads of `experts` experts over their mean, most first.
std::vector<double> skewed_loads(double skew, std::int64_t experts);
std::vector<double> measured_loads(const ExpertQuantiles& quantiles, std::int64_t experts);

// What is to be expected of the busiest of `ranks` ranks, over the mean, where experts with these
// loads are dealt to them without regard to load. With one expert a rank it is the largest load,
// with more they even out, and a single rank has everything.
double busiest_rank(const std::vector<double>& loads, std::int64_t ranks);

// The same of a layer, in steps of a 32nd, so that layers that hardly differ are priced once.
// Experts that take a fixed number of rows are even, whatever the routing.
double imbalance_of(const Routing& routing, const config::ModelConfig& model, std::int64_t layer);
// Of the layer in which it is largest.
double largest_imbalance(const Routing& routing, const config::ModelConfig& model);

}  // namespace weft::plan
