// HOW SURE IS A PRICE? Published runs that are like a layout, with what the model makes of them,
// and the modes of a layout that no published run has.
//
// The errors are those of runs that no number was fitted on. Near is a run of the same class (with
// or without experts), then on the same GPU, in the same format, by the same dispatcher, in the
// same order. Errors are priced when they are asked for, so that they are those of the hardware
// files at hand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/plan/published.h"
#include "weft/plan/run_modes.h"

namespace weft::plan {

// What measurements say of a price.
struct Trust {
  std::optional<ErrorSummary> band;     // of the nearest held-out runs; nullopt: there are none
  std::vector<std::string> unmeasured;  // modes, or modes together, that no published run has
};

// "±7 %, 9 of 10 within 21 %"; empty where there is no band.
std::string band_text(const Trust& trust);
base::Json to_json(const Trust& trust);

class MeasuredRuns {
 public:
  // `tables` with runs that were measured, `hardware` by GPU.
  MeasuredRuns(std::vector<PublishedTable> tables, HardwareTable hardware);

  Trust of(const config::Config& config, const Hardware& hardware);

 private:
  struct Measured {
    const PublishedRun* run;
    bool is_held_out = false;
    std::set<RunMode> modes;
    std::optional<double> error = {};  // once it was priced
  };

  std::optional<ErrorSummary> band_of(const config::Config& config, const Hardware& hardware);
  std::vector<std::string> unmeasured(const config::Config& config, const Hardware& hardware) const;
  double error_of(Measured& measured);

  std::vector<PublishedTable> tables_;
  HardwareTable hardware_;
  std::vector<Measured> runs_;
};

}  // namespace weft::plan
