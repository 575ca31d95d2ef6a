// Calibration: a few numbers of the hardware files, fitted to published runs.
//
// Each fitted number is shared by the GPUs that have the same part: a kind of chip has its share of
// the peak, an architecture its kernels, a kind of host its time for a launch. The rows of the
// fitted models are used and no others, so that whole models are held out. The sum of
// |log(predicted / published)| is made least, coordinate by coordinate, from nominal values that a
// weak prior pulls to; each model on each GPU weighs the same, because releases repeat rows.
// Nothing is random, so that the fit can be repeated.
#pragma once

#include <string>
#include <vector>

#include "weft/plan/published.h"

namespace weft::plan {

struct FittedNumber {
  std::string key;                // of the hardware files
  std::vector<std::string> gpus;  // that share it
  double value = 0;
};

struct Fit {
  std::vector<FittedNumber> numbers;
  HardwareTable hardware;  // with them
  std::size_t rows = 0;    // that were used
};

Fit fit_hardware(const PublishedTable& table, const HardwareTable& hardware);

std::string to_text(const Fit& fit);

}  // namespace weft::plan
