// Quality of `weft tune`: distance of its result from the best setting.
//
// The tuner runs its own loop. Then the grid is measured in three heats. First every setting runs
// once. Then those near the fastest run again. At last the fastest few and the tuner's setting
// alternate; this gives the verdict.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "weft/measure/runs/tuner.h"

namespace weft::measure {

enum class Heat { Every, Near, Final };
inline constexpr std::size_t kHeats = 3;

// Steps of one run in each heat; with more than one, the first warms up.
inline constexpr std::array<std::int64_t, kHeats> kHeatSteps{1, 3, 5};
// Settings in the second heat: at least kFewestNear, more if they are within kNearFastest of the
// fastest, at most kMostNear. One step cannot separate closer times.
inline constexpr std::size_t kFewestNear = 12, kMostNear = 24;
inline constexpr double kNearFastest = 1.12;
inline constexpr std::size_t kFinalists = 4;  // besides the tuner's setting

struct TuneBenchRequest {
  TuneRequest tune;
  int rounds = 3;  // runs in the last heat
  std::function<void(Heat heat, const std::string& what, int done, int of)> progress;
  std::function<void(const std::string& line)> log;  // called after each heat
};

struct MeasuredSetting {
  std::string change;                               // relative to the initial config; empty: none
  std::array<std::vector<double>, kHeats> heat_ms;  // timed steps; empty: not in this heat
  bool is_tuned = false;                            // true for the tuner's choice

  // Last heat of the setting; ms() is the median of its runs' medians there. Do not compare times
  // of different heats.
  Heat heat() const;
  double ms() const;
};

struct TuneBench {
  Tuning tuning;
  std::size_t grid = 0;                   // number of settings
  std::vector<MeasuredSetting> settings;  // measured settings by heat, fastest first
  std::vector<std::string> failed;        // failed settings with the reason
  bool interrupted = false;               // true if stopped before the end of the last heat

  // Requires at least one finalist.
  const MeasuredSetting& best() const { return settings.front(); }
  const MeasuredSetting& tuned() const;
  double loss() const { return tuned().ms() / best().ms() - 1; }
};

TuneBench bench_tune(const TuneBenchRequest& request);

}  // namespace weft::measure
