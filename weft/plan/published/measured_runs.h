// Confidence in a price: published runs similar to a layout with the model's errors on them, and
// modes of the layout that no published run has.
//
// Only runs that no number was fitted to count. Similar means the same class (with or without
// experts), then the same GPU, format, dispatcher and order. Errors are priced on demand with the
// current hardware files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/plan/price/run_modes.h"
#include "weft/plan/published/published.h"
#include "weft/plan/published/validation.h"

namespace weft::plan {

// Evidence of measurements for a price.
struct Trust {
  std::optional<ErrorSummary> band;     // errors on the nearest held-out runs; nullopt: none
  std::vector<std::string> unmeasured;  // modes, or combinations, that no published run has
};

// "±7 %, 9 of 10 within 21 %"; empty: no band.
std::string band_text(const Trust& trust);
base::Json to_json(const Trust& trust);

class MeasuredRuns {
 public:
  // `tables`: measured runs. `hardware`: by GPU.
  MeasuredRuns(std::vector<PublishedTable> tables, HardwareTable hardware);

  Trust of(const config::Config& config, const Hardware& hardware);

 private:
  struct Measured {
    const PublishedRun* run;
    bool is_held_out = false;
    std::set<RunMode> modes;
    std::optional<double> error = {};  // set once priced
  };

  std::optional<ErrorSummary> band_of(const config::Config& config, const Hardware& hardware);
  std::vector<std::string> unmeasured(const config::Config& config, const Hardware& hardware) const;
  double error_of(Measured& measured);

  std::vector<PublishedTable> tables_;
  HardwareTable hardware_;
  std::vector<Measured> runs_;
};

}  // namespace weft::plan
