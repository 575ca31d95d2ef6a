// Unused memory savings of a run: freed bytes and additional step time of each.
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
#include "weft/measure/memory/memory_forecast.h"
#include "weft/plan/memory/offloaded_layers.h"

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
  std::optional<config::RecomputeModule> module = {};  // for Recompute
  std::vector<config::OffloadModule> offloaded = {};   // for Offload
  std::string name;                                    // "moe_act", "full recomputation"
  std::vector<std::string> words;  // command-line words: "model.recompute_granularity=full"
  std::size_t peak_bytes = 0;      // peak with this saving alone
  std::int64_t bytes = 0;          // freed bytes at the peak
  double seconds = 0;              // additional step time; nominal
  std::size_t host_bytes = 0;      // additional host memory of the rank that needs most of it
  MemoryForecast forecast = {};    // run with this saving, without timelines

  // True if training rounds differently with it.
  bool changes_numerics() const {
    return kind == SavingKind::SmallMoments || kind == SavingKind::SmallGradients;
  }
};

// Smallest visible share of step time; less prints as no time.
inline constexpr double kNoTime = 1e-5;
// Prefix of offload names.
inline constexpr std::string_view kOffload = "offload ";

// Sorts by bytes per second; savings without step time come first, by bytes.
void sort_by_cost(std::vector<Saving>& savings, double step_seconds);

struct Savings {
  std::vector<Saving> worthwhile;    // cheapest first
  std::vector<std::string> without;  // names of savings that free nothing at the peak
  std::vector<Saving> elsewhere;     // the savings named in `without`; they may free host memory
};

// Progress callback; any thread may call it.
using Tell = std::function<void(const std::string&)>;

// Savings of a legal run that is predicted and priced; `asked` as in forecast_memory. Each saving
// is a forecast of the run with that saving.
Savings find_savings(const config::Config& asked,
                     const MemoryForecast& now,
                     const Tell& tell,
                     const Forecaster& forecast = forecast_memory);

// Config with a saving; nullopt: the rules refuse it.
std::optional<config::Config> with_saving(config::Config config, const Saving& saving);

// Effect of savings on a run: recomputed parts, offloaded parts by layer, and the optimizer state's
// sharding, place and size.
struct SavedState {
  std::set<std::pair<schedule::Piece, schedule::Part>> recomputed;
  std::optional<int> recomputed_layers;
  int recomputed_group = 1;
  plan::OffloadedStages offloaded;
  bool is_sharded = false;
  derive::LogitsKept logits = derive::LogitsKept::Whole;
  double share_on_host = 0;
  std::int64_t bytes_of_parameter = 0;  // bytes of optimizer state and gradient per parameter
};
SavedState saved_state(const config::Config& asked);

// True if a saving changes the run.
bool is_new(const SavedState& before, const SavedState& after);
bool is_new(const config::Config& before, const config::Config& after);
// Words such as "model.recompute_modules=[moe_act]" for every changed key of savings.
std::vector<std::string> words_of(const config::Config& before, const config::Config& after);

}  // namespace weft::measure
