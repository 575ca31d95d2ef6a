// Published against priced numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/plan/published/published.h"

namespace weft::plan {

struct Price;

struct PricedRun {
  const PublishedRun* run = nullptr;
  double predicted = 0;  // TFLOP/s per GPU
  double step_ms = 0;
  bool is_fitted = false;
  double error() const { return predicted / run->tflops - 1; }
};

struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0, p90 = 0;  // absolute errors
};

ErrorSummary summary_of(const std::vector<double>& errors);

struct Validation {
  std::vector<PricedRun> rows;
  std::vector<std::string> left_out;
  ErrorSummary all, fitted, held_out;
};

using HardwareTable = std::map<std::string, Hardware>;  // by GPU

// TFLOP/s per GPU of a price, with the row's FLOP count.
double counted_tflops(const PublishedRun& run, const Price& price);

// Leaves out rows on GPUs that the table lacks.
Validation validate(const PublishedTable& table, const HardwareTable& hardware);

base::Json to_json(const Validation& validation);
std::string to_text(const Validation& validation);

}  // namespace weft::plan
