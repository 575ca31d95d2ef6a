// Which savings let a run fit that does not fit its room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/measure/memory_room.h"
#include "weft/measure/memory_savings.h"

namespace weft::measure {

// A run that is too large: as it was asked for, forecast and priced, and what it has to fit in.
struct TooLarge {
  const config::Config& asked;
  const MemoryForecast& now;
  const MemoryRoom& room;
};

// Savings that free some of what is lacking (`bytes` says how much of it: of the largest device, or
// of host memory where only that is lacking) and take no host memory that is not there; cheapest
// first.
std::vector<Saving> helpful_savings(const TooLarge& run, const Savings& savings);

// The first ones, so many at most, of which none does what another does in part or whole: not whole
// layers beside one of their modules, say, nor two forms of a smaller optimizer.
std::vector<Saving> apart(const config::Config& asked,
                          const std::vector<Saving>& savings,
                          std::size_t most);

// Savings that together let the run fit.
struct Fit {
  std::vector<std::string> names;
  std::vector<std::string> words;
  std::size_t peak_bytes = 0;
  double seconds = 0;  // so much longer is a step; nominal
};

// The cheapest that was found (docs/decisions/0066): savings are collected in their order until the
// run fits, and again from each large one first; what turns out to be needless is left out. Those
// that round otherwise are taken only where nothing suffices without them. Of the optimizer's state
// no more twentieths are offloaded than it takes. None: not even all of it suffices.
std::optional<Fit> find_fit(const TooLarge& run,
                            const std::vector<Saving>& helpful,
                            const Tell& tell,
                            const Forecaster& forecast = forecast_memory);

}  // namespace weft::measure
