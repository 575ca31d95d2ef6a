// `weft tune` against everything it could have chosen: how far is what it found from the best?
//
// The tuner runs its own loop. Then the grid, in three heats: every setting once, what is near the
// fastest of these again, and the fastest few with the tuner's, in turn, which is the verdict.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "weft/measure/tuner.h"

namespace weft::measure {

enum class Heat { Every, Near, Final };
inline constexpr std::size_t kHeats = 3;

// Steps of one run in each heat; where there are more than one, the first warms up.
inline constexpr std::array<std::int64_t, kHeats> kHeatSteps{1, 3, 5};
// What goes from the first heat to the second: so many at least, more where they are as near to the
// fastest as one step cannot tell, and so many at most.
inline constexpr std::size_t kFewestNear = 12, kMostNear = 24;
inline constexpr double kNearFastest = 1.12;
inline constexpr std::size_t kFinalists = 4;  // beside the tuner's setting

struct TuneBenchRequest {
  TuneRequest tune;
  int rounds = 3;  // of the last heat
  std::function<void(Heat heat, const std::string& what, int done, int of)> progress;
  std::function<void(const std::string& line)> log;  // of each heat, when it is over
};

struct MeasuredSetting {
  std::string change;                               // of the config to begin with; empty: none
  std::array<std::vector<double>, kHeats> heat_ms;  // of the timed steps; empty where it had none
  bool is_tuned = false;                            // the one that the tuner chose

  // By its last heat, the median of its runs' medians. Settings of different heats do not compare.
  Heat heat() const;
  double ms() const;
};

struct TuneBench {
  Tuning tuning;
  std::size_t grid = 0;                   // settings that there are
  std::vector<MeasuredSetting> settings;  // those measured, by heat, the fastest first
  std::vector<std::string> failed;        // settings that did not run, and why
  bool interrupted = false;               // before the end of the last heat

  // With at least one finalist.
  const MeasuredSetting& best() const { return settings.front(); }
  const MeasuredSetting& tuned() const;
  double loss() const { return tuned().ms() / best().ms() - 1; }
};

TuneBench bench_tune(const TuneBenchRequest& request);

}  // namespace weft::measure
