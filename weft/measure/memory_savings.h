// Savings of memory that a run does not take: what each would free, and how much longer a step
// would be.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/logits.h"
#include "weft/measure/memory_forecast.h"
#include "weft/plan/offloaded_layers.h"

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
  MemoryForecast forecast = {};    // of the run with it, without time lines

  // Whether training rounds otherwise with it.
  bool rounds() const {
    return kind == SavingKind::SmallMoments || kind == SavingKind::SmallGradients;
  }
};

// Less than this share of a step is no time: it is not to be seen in what is printed.
inline constexpr double kNoTime = 1e-5;
// How names of offloads begin.
inline constexpr std::string_view kOffload = "offload ";

// By bytes for a second; those that cost nothing of a step come first, by bytes.
void sort_by_cost(std::vector<Saving>& savings, double step_seconds);

struct Savings {
  std::vector<Saving> worthwhile;    // cheapest first
  std::vector<std::string> without;  // names of those that free nothing at the peak
  std::vector<Saving> elsewhere;     // these: they may free host memory
};

// `tell` hears how far it is, from whatever thread.
using Tell = std::function<void(const std::string&)>;

// Of a legal run that is predicted and priced; `asked` as forecast_memory takes it. Every saving is
// the run with that saving, forecast: nothing is estimated.
Savings find_savings(const config::Config& asked,
                     const MemoryForecast& now,
                     const Tell& tell,
                     const Forecaster& forecast = forecast_memory);

// The run with a saving; none where the rules refuse it.
std::optional<config::Config> with_saving(config::Config config, const Saving& saving);

// What savings make of a run: what runs again, what is offloaded from which layers, who keeps the
// optimizer's state, where, and in how many bytes.
struct SavedState {
  std::set<std::pair<schedule::Piece, schedule::Part>> recomputed;
  std::optional<int> recomputed_layers;
  int recomputed_group = 1;
  plan::OffloadedStages offloaded;
  bool is_sharded = false;
  derive::LogitsKept logits = derive::LogitsKept::Whole;
  double share_on_host = 0;
  std::int64_t bytes_of_parameter = 0;  // of optimizer state and gradient
};
SavedState saved_state(const config::Config& asked);

// Whether a saving changes anything.
bool is_new(const SavedState& before, const SavedState& after);
bool is_new(const config::Config& before, const config::Config& after);
// "model.recompute_modules=[moe_act]" for every key of savings that has another value.
std::vector<std::string> words_of(const config::Config& before, const config::Config& after);

}  // namespace weft::measure
