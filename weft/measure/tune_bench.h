// `weft tune` against everything it could have chosen: how far is what it found from the best?
#pragma once

#include <string>
#include <vector>

#include "weft/measure/tuner.h"

namespace weft::measure {

struct TuneBenchRequest {
  TuneRequest tune;
  int rounds = 3;     // of the best settings of the grid, in turn
  int finalists = 8;  // which these are: the fastest by one run each, and the tuner's
  std::function<void(const std::string& what, int done, int of)> progress;
};

struct MeasuredSetting {
  std::string change;            // of the config to begin with; empty: none
  double first_ms = 0;           // by one run, as every setting has it
  std::vector<double> final_ms;  // of all runs of a finalist; else empty
  bool is_tuned = false;         // the one that the tuner chose

  double ms() const;  // median of the latter, or the former
};

struct TuneBench {
  Tuning tuning;
  std::vector<MeasuredSetting> settings;  // the whole grid, fastest first, finalists before others
  bool interrupted = false;

  const MeasuredSetting& best() const { return settings.front(); }
  const MeasuredSetting& tuned() const;
  double loss() const { return tuned().ms() / best().ms() - 1; }
};

TuneBench bench_tune(const TuneBenchRequest& request);

}  // namespace weft::measure
