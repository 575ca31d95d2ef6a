#include "weft/measure/memory/less_offload.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/derive/derived_run.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace {

using config::Config;

constexpr double kHundredths = 100;

// Run with less of its optimizer's state in host memory.
struct LessOffloaded {
  Config asked;
  MemoryForecast forecast;
};

std::optional<LessOffloaded> with_less(const TooLarge& run,
                                       const Tell& tell,
                                       const Forecaster& forecast) {
  const std::optional<double> fraction = fraction_with_room(run);
  if (!fraction) return std::nullopt;
  LessOffloaded less{.asked = run.asked, .forecast = {}};
  less.asked.optimizer.optimizer_cpu_offload = *fraction > 0;
  if (*fraction > 0) less.asked.optimizer.optimizer_offload_fraction = *fraction;
  if (!rules::judge(less.asked).legal()) return std::nullopt;
  tell(base::text("looking for what fits: optimizer.optimizer_offload_fraction={:.2f}", *fraction));
  less.forecast = forecast(less.asked, run.now.step_seconds > 0 ? Priced::Yes : Priced::No);
  return less.forecast.is_predicted() ? std::optional(std::move(less)) : std::nullopt;
}

std::string_view key_of(std::string_view word) { return word.substr(0, word.find('=')); }

// Concatenates words; for a key in both, the later word wins.
std::vector<std::string> joined(std::vector<std::string> words,
                                const std::vector<std::string>& later) {
  std::erase_if(words, [&](const std::string& word) {
    return std::ranges::any_of(later, [&](const std::string& other) {
      return key_of(other) == key_of(word);
    });
  });
  words.insert(words.end(), later.begin(), later.end());
  return words;
}

}  // namespace

std::optional<double> fraction_with_room(const TooLarge& run) {
  const derive::OptimizerOffload offload = derive::optimizer_offload(run.asked);
  const Overrun lacking = overrun(run.now, run.room);
  if (!offload.is_on() || lacking.host == 0) return std::nullopt;
  std::vector<std::int64_t> state;
  for (const derive::DerivedRank& rank :
       derive::derived_run(rules::judge(run.asked).config).ranks) {
    state.push_back(rank.bytes.offloaded);
  }
  const double taken =
      base::number(most_of_machine(run.now.layout, *run.room.host, [&](int, int pp_rank) {
        return static_cast<std::size_t>(state[base::at(pp_rank)]);
      }));
  const double share = std::max(0.0, 1 - base::number(lacking.host) / taken);
  return std::floor(offload.fraction * share * kHundredths) / kHundredths;
}

std::optional<Fit> fit_by_less_offload(const TooLarge& run,
                                       const Tell& tell,
                                       const Forecaster& forecast) {
  const std::optional<LessOffloaded> less = with_less(run, tell, forecast);
  if (!less || !overrun(less->forecast, run.room).is_none()) return std::nullopt;
  return Fit{.names = {kLessOffload},
             .words = words_of(run.asked, less->asked),
             .peak_bytes = less->forecast.peak_bytes(),
             .seconds = less->forecast.step_seconds - run.now.step_seconds};
}

std::optional<Fit> fit_beside_less_offload(const TooLarge& run,
                                           const Tell& tell,
                                           const Forecaster& forecast) {
  const std::optional<LessOffloaded> less = with_less(run, tell, forecast);
  if (!less || is_hopeless(less->forecast, run.room)) return std::nullopt;
  const TooLarge then{.asked = less->asked, .now = less->forecast, .room = run.room};
  const Savings savings = find_savings(less->asked, less->forecast, tell, forecast);
  std::optional<Fit> fit = find_fit(then, helpful_savings(then, savings), tell, forecast);
  if (!fit) return std::nullopt;
  fit->names.insert(fit->names.begin(), kLessOffload);
  fit->words = joined(words_of(run.asked, less->asked), fit->words);
  fit->seconds += less->forecast.step_seconds - run.now.step_seconds;
  return fit;
}

}  // namespace weft::measure
