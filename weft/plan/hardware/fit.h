// Fit of some hardware numbers to published runs.
//
// GPUs with the same part share a fitted number: a chip its share of the peak, an architecture its
// kernels, a host its launch time. Only rows of the fitted models are used, so whole models are
// held out. Coordinate descent minimises the sum of |log(predicted / published)|, starting at
// nominal values with a weak prior towards them. Each model on each GPU has equal weight, because
// releases repeat rows. The fit is deterministic.
#pragma once

#include <string>
#include <vector>

#include "weft/plan/published/published.h"
#include "weft/plan/published/validation.h"

namespace weft::plan {

struct FittedNumber {
  std::string key;                // key of the hardware files
  std::vector<std::string> gpus;  // GPUs that share it
  double value = 0;
};

struct Fit {
  std::vector<FittedNumber> numbers;
  HardwareTable hardware;  // table with these numbers
  std::size_t rows = 0;    // used rows
};

Fit fit_hardware(const PublishedTable& table, const HardwareTable& hardware);

std::string to_text(const Fit& fit);

}  // namespace weft::plan
