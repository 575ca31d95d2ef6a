// Search for savings that make a run fit its memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/measure/memory/memory_room.h"
#include "weft/measure/memory/memory_savings.h"

namespace weft::measure {

// Run that exceeds its memory: its config as written, its forecast and the available room.
struct TooLarge {
  const config::Config& asked;
  const MemoryForecast& now;
  const MemoryRoom& room;
};

// Savings that free some of the missing bytes and fit into host memory, cheapest first.
// Saving::bytes counts the largest device, or host memory if only that is missing.
std::vector<Saving> helpful_savings(const TooLarge& run, const Savings& savings);

// First savings, at most `most`, without overlaps: not full layers beside one of their modules, not
// two forms of a smaller optimizer.
std::vector<Saving> apart(const config::Config& asked,
                          const std::vector<Saving>& savings,
                          std::size_t most);

// Savings that together make the run fit.
struct Fit {
  std::vector<std::string> names;
  std::vector<std::string> words;
  std::size_t peak_bytes = 0;
  double seconds = 0;  // additional step time; nominal
};

// Cheapest combination found (docs/decisions/0066). Savings are added in their order until the run
// fits, and again starting from each large one; needless ones are then removed. Savings that change
// numerics are used only if nothing else suffices. Optimizer state is offloaded in the fewest
// twentieths that suffice. nullopt: even all savings together do not suffice.
std::optional<Fit> find_fit(const TooLarge& run,
                            const std::vector<Saving>& helpful,
                            const Tell& tell,
                            const Forecaster& forecast = forecast_memory);

}  // namespace weft::measure
