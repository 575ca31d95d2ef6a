#include "weft/measure/memory_fit.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "weft/base/text.h"

namespace weft::measure {
namespace {

using config::Config;

using Taken = std::vector<const Saving*>;

constexpr double kAnyTime = std::numeric_limits<double>::infinity();

double time_of(const Saving& saving) { return std::max(0.0, saving.seconds); }

std::int64_t freed(const TooLarge& run, const Overrun& lacking, const MemoryForecast& then) {
  const auto less = [](std::size_t before, std::size_t after) {
    return static_cast<std::int64_t>(before) - static_cast<std::int64_t>(after);
  };
  if (lacking.device > 0 || !run.room.host) return less(run.now.peak_bytes(), then.peak_bytes());
  return less(host_need(run.now, *run.room.host), host_need(then, *run.room.host));
}

// Each of these has the distributed optimizer in it, and most have the remainders.
bool shrinks_optimizer(const Saving& saving) {
  using enum SavingKind;
  return saving.kind == ShardOptimizer || saving.kind == Remainders ||
         saving.kind == SmallMoments || saving.kind == SmallGradients;
}

bool adds_to(const Config& asked, const Saving& saving, const Saving& other) {
  const std::optional<Config> with = with_saving(asked, other);
  if (!with) return true;
  const std::optional<Config> both = with_saving(*with, saving);
  return both && is_new(*with, *both);
}

// Tries combinations out, each once.
class FitSearch {
 public:
  FitSearch(const TooLarge& run, const Tell& tell, const Forecaster& forecast)
      : run_(run), tell_(tell), forecast_(forecast) {}

  // Savings that suffice, none where they take as long as `most_seconds`.
  std::optional<Fit> priced(const Taken& taken, double most_seconds) {
    const Config config = with_least_offload(taken, config_of(taken).value());
    const MemoryForecast then = forecast_(config, Priced::Yes);
    const Fit fit{.names = names_of(taken),
                  .words = words_of(run_.asked, config),
                  .peak_bytes = then.peak_bytes(),
                  .seconds = then.step_seconds - run_.now.step_seconds};
    return fit.seconds < most_seconds ? std::optional(fit) : std::nullopt;
  }

  // One more after the other until the run fits, for less than `most_seconds`.
  std::optional<Fit> collect(const Taken& order, double most_seconds) {
    Taken taken;
    Overrun lacking = overrun(run_.now, run_.room);
    for (const Saving* saving : order) {
      const Taken more = with(taken, saving);
      if (seconds_of(more) >= most_seconds) continue;
      const std::optional<Config> config = config_of(more);
      if (!config) continue;
      const std::optional<Overrun> left = look_at(more, *config);
      if (!left || left->host > lacking.host) continue;
      taken = more;
      lacking = *left;
      if (lacking.is_none()) return priced(without_needless(taken), most_seconds);
    }
    return std::nullopt;
  }

 private:
  // Whole layers take the place of modules.
  static Taken with(Taken taken, const Saving* saving) {
    if (saving->kind == SavingKind::RecomputeAll) {
      std::erase_if(taken, [](const Saving* each) { return each->kind == SavingKind::Recompute; });
    }
    taken.push_back(saving);
    return taken;
  }

  static double seconds_of(const Taken& taken) {
    double all = 0;
    for (const Saving* saving : taken) all += time_of(*saving);
    return all;
  }

  // None where one of them changes nothing, or the rules refuse it.
  std::optional<Config> config_of(const Taken& taken) const {
    Config config = run_.asked;
    for (const Saving* saving : taken) {
      const std::optional<Config> next = with_saving(config, *saving);
      if (!next || !is_new(config, *next)) return std::nullopt;
      config = *next;
    }
    return config;
  }

  // None where it is not predicted.
  std::optional<Overrun> look_at(const Taken& taken, const Config& config) {
    const std::vector<std::string> words = words_of(run_.asked, config);
    const auto known = seen_.find(words);
    if (known != seen_.end()) return known->second;
    tell_(base::text("looking for what fits: {}", fmt::join(names_of(taken), ", ")));
    const MemoryForecast then = forecast_(config, Priced::No);
    std::optional<Overrun> left;
    if (then.is_predicted()) left = overrun(then, run_.room);
    return seen_[words] = left;
  }

  // What rounds goes first, then what costs most, then what frees least.
  Taken without_needless(const Taken& taken) {
    Taken costly = taken, rest = taken;
    std::ranges::stable_sort(costly, [](const Saving* a, const Saving* b) {
      return std::tuple(b->rounds(), time_of(*b), a->bytes) <
             std::tuple(a->rounds(), time_of(*a), b->bytes);
    });
    for (const Saving* saving : costly) {
      if (rest.size() == 1) break;
      Taken fewer = rest;
      std::erase(fewer, saving);
      const std::optional<Config> config = config_of(fewer);
      if (config && suffices(fewer, *config)) rest = fewer;
    }
    return rest;
  }

  bool suffices(const Taken& taken, const Config& config) {
    const std::optional<Overrun> left = look_at(taken, config);
    return left && left->is_none();
  }

  // No more of the optimizer's state in host memory than it takes, in quarters.
  Config with_least_offload(const Taken& taken, Config config) {
    if (!config.optimizer.optimizer_cpu_offload) return config;
    const double before = run_.asked.optimizer.optimizer_cpu_offload
                              ? run_.asked.optimizer.optimizer_offload_fraction
                              : 0;
    const double most = config.optimizer.optimizer_offload_fraction;
    for (const double fraction : {0.25, 0.5, 0.75}) {
      if (fraction <= before || fraction >= most) continue;
      config.optimizer.optimizer_offload_fraction = fraction;
      if (suffices(taken, config)) return config;
    }
    config.optimizer.optimizer_offload_fraction = most;
    return config;
  }

  static std::vector<std::string> names_of(const Taken& taken) {
    std::vector<std::string> names;
    for (const Saving* saving : taken) names.push_back(saving->name);
    return names;
  }

  const TooLarge& run_;
  const Tell& tell_;
  const Forecaster& forecast_;
  std::map<std::vector<std::string>, std::optional<Overrun>> seen_;
};

// The one that costs least time of those that suffice alone and keep every bit.
const Saving* fit_alone(const TooLarge& run, const std::vector<Saving>& helpful) {
  const Saving* best = nullptr;
  for (const Saving& saving : helpful) {
    if (saving.rounds() || !overrun(saving.forecast, run.room).is_none()) continue;
    if (best == nullptr || time_of(saving) < time_of(*best)) best = &saving;
  }
  return best;
}

}  // namespace

std::vector<Saving> helpful_savings(const TooLarge& run, const Savings& savings) {
  const Overrun lacking = overrun(run.now, run.room);
  std::vector<Saving> helpful;
  for (const std::vector<Saving>* some : {&savings.worthwhile, &savings.elsewhere}) {
    for (Saving saving : *some) {
      if (!saving.forecast.is_predicted()) continue;
      const Overrun left = overrun(saving.forecast, run.room);
      saving.bytes = freed(run, lacking, saving.forecast);
      const bool takes_more = left.host > lacking.host || left.device > lacking.device;
      if (saving.bytes > 0 && !takes_more) helpful.push_back(std::move(saving));
    }
  }
  std::ranges::stable_sort(helpful,
                           [](const Saving& a, const Saving& b) { return a.is_cheaper_than(b); });
  return helpful;
}

std::vector<Saving> apart(const Config& asked,
                          const std::vector<Saving>& savings,
                          std::size_t most) {
  std::vector<Saving> chosen;
  for (const Saving& saving : savings) {
    if (chosen.size() == most) break;
    const bool is_apart = std::ranges::all_of(chosen, [&](const Saving& other) {
      if (shrinks_optimizer(saving) && shrinks_optimizer(other)) return false;
      return adds_to(asked, saving, other) && adds_to(asked, other, saving);
    });
    if (is_apart) chosen.push_back(saving);
  }
  return chosen;
}

std::optional<Fit> find_fit(const TooLarge& run,
                            const std::vector<Saving>& helpful,
                            const Tell& tell,
                            const Forecaster& forecast) {
  Taken cheap, rounding, whole;
  for (const Saving& saving : helpful) {
    const bool is_whole = saving.kind == SavingKind::RecomputeAll;
    (is_whole ? whole : saving.rounds() ? rounding : cheap).push_back(&saving);
  }
  FitSearch search(run, tell, forecast);
  const Saving* alone = fit_alone(run, helpful);
  const double most_seconds = alone == nullptr ? kAnyTime : time_of(*alone);
  if (std::optional<Fit> together = search.collect(cheap, most_seconds)) return together;
  if (alone != nullptr) return search.priced({alone}, kAnyTime);
  Taken all = cheap;
  all.insert(all.end(), rounding.begin(), rounding.end());
  all.insert(all.end(), whole.begin(), whole.end());
  return search.collect(all, kAnyTime);
}

}  // namespace weft::measure
