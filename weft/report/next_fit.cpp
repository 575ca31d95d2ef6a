// Suggestions before any tuning: fit into memory, and profile the time.
#include "weft/base/text.h"
#include "weft/measure/memory/memory_savings.h"
#include "weft/report/next.h"

namespace weft::report {

using base::text;

std::vector<Suggestion> fit_suggestions(const NextFacts& facts) {
  const std::optional<MemoryWall>& memory = facts.report.memory;
  if (facts.run == nullptr || !memory || memory->share() < kTightMemory) return {};
  const measure::Savings savings =
      measure::find_savings(*facts.run, memory->forecast, [](const std::string&) {});
  if (savings.worthwhile.empty()) return {};
  const measure::Saving& saving = savings.worthwhile.front();
  return {{.phase = Phase::Fit,
           .change = text("{}", fmt::join(saving.words, " ")),
           .gain_ms = -saving.seconds * 1e3,
           .basis = Suggestion::Basis::Simulated,
           .freed_bytes = saving.bytes,
           .because = text("a rank needs {} of the {} of {}",
                           base::human_bytes(static_cast<double>(memory->forecast.peak_bytes())),
                           base::human_bytes(static_cast<double>(memory->room_bytes)),
                           memory->gpu),
           .rule = "fit first, with the saving that costs least: selective recomputation before "
                   "full (A6, A19)"}};
}

// Suggests a richer profile for a foreign trace without host data and with unexplained idle time.
std::vector<Suggestion> idle_suggestions(const NextFacts& facts) {
  constexpr double kMuchIdle = 0.15;  // share of the step
  const trace::Walls& walls = facts.report.walls;
  if (facts.run != nullptr || facts.report.has_launches) return {};
  if (walls.idle < kMuchIdle * walls.step) return {};
  return {{.phase = Phase::Profile,
           .change = "record the host too (activities=[CPU, CUDA]), and every rank",
           .gain_ms = std::nullopt,
           .because = text("nothing ran for {:.4g} of {:.4g} ms, and the trace does not say why",
                           walls.idle,
                           walls.step),
           .rule =
               "idle time is a host that launches late or waits for the device, a stage that "
               "waits for another, or data that is not there: the host's calls tell them apart"}};
}

// Ranks that share cores: such a run allows no other conclusion.
std::vector<Suggestion> crowding_suggestions(const NextFacts& facts) {
  return {{.phase = Phase::Profile,
           .change = "fewer ranks, or a machine with a core for each thread",
           .gain_ms = std::nullopt,
           .because = facts.report.crowded,
           .rule = "a layout is judged where each rank has its own cores"}};
}

std::vector<Suggestion> profile_suggestions(const NextFacts& facts) {
  if (facts.report.traced_steps > 0 && !facts.report.crowded.empty()) {
    return crowding_suggestions(facts);
  }
  if (facts.report.traced_steps > 0) return idle_suggestions(facts);
  return {{.phase = Phase::Profile,
           .change = "runtime.trace=true",
           .gain_ms = std::nullopt,
           .because = "there is no trace of this run",
           .rule = "profile before a knob is turned: which wall is in the way decides which"}};
}

}  // namespace weft::report
