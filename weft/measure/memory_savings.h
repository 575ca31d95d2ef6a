// Savings of memory that a run does not take: what each would free, and how much longer a step
// would be.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/measure/memory_forecast.h"

namespace weft::measure {

enum class SavingKind {
  Recompute,
  RecomputeAll,
  Offload,
  ShardOptimizer,
  OffloadOptimizer,
  Remainders,
  SmallMoments,
  SmallGradients,
  LogitsInChunks
};

struct Saving {
  SavingKind kind = SavingKind::Recompute;
  std::optional<config::RecomputeModule> module = {};  // of Recompute
  std::vector<config::OffloadModule> offloaded = {};   // of Offload
  std::string name;                                    // "moe_act", "full recomputation"
  std::vector<std::string> words;  // to type: "model.recompute_granularity=full"
  std::size_t peak_bytes = 0;      // of the run with it alone
  std::int64_t bytes = 0;          // so much less than without
  double seconds = 0;              // so much longer is its step; nominal
  std::size_t host_bytes = 0;      // so much more host memory has the rank that needs most of it

  // Whether training rounds otherwise with it.
  bool rounds() const {
    return kind == SavingKind::SmallMoments || kind == SavingKind::SmallGradients;
  }
  // Bytes for a second; those that cost nothing come first.
  bool is_cheaper_than(const Saving& other) const;
};

struct Savings {
  std::vector<Saving> worthwhile;    // cheapest first
  std::vector<std::string> without;  // names of those that free nothing at the peak
};

// `tell` hears how far it is, from whatever thread.
using Tell = std::function<void(const std::string&)>;

// Of a legal run that is predicted and priced; `asked` as forecast_memory takes it. Every saving is
// the run with that saving, forecast: nothing is estimated.
Savings find_savings(const config::Config& asked, const MemoryForecast& now, const Tell& tell);

// Savings that together let the run fit.
struct Fit {
  std::vector<std::string> names;
  std::vector<std::string> words;
  std::size_t peak_bytes = 0;
};
// One alone where that suffices; else the cheapest first, one more after the other, then what
// rounds otherwise, and whole layers at last. None: not even that suffices.
std::optional<Fit> find_fit(const config::Config& asked,
                            const Savings& savings,
                            std::size_t room_bytes,
                            const Tell& tell);

}  // namespace weft::measure
