// Does it fit, and is it known where the time goes: what comes before any tuning.
#include "weft/base/text.h"
#include "weft/measure/memory_savings.h"
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

std::vector<Suggestion> profile_suggestions(const NextFacts& facts) {
  if (facts.report.traced_steps > 0) return {};
  return {{.phase = Phase::Profile,
           .change = "runtime.trace=true",
           .gain_ms = std::nullopt,
           .because = "there is no trace of this run",
           .rule = "profile before a knob is turned: which wall is in the way decides which"}};
}

}  // namespace weft::report
