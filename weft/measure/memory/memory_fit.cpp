#include "weft/measure/memory/memory_fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "weft/base/casts.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/parallel/parallel.h"
#include "weft/base/text.h"

namespace weft::measure {
namespace {

using config::Config;

using Taken = std::vector<const Saving*>;
using Parts = std::vector<std::unique_ptr<Saving>>;  // parts of a saving with several modules

constexpr double kAnyTime = std::numeric_limits<double>::infinity();
// Savings that free at least this share of the missing bytes also start an order, up to
// kMostOrders.
constexpr double kLarge = 0.2;
constexpr std::size_t kMostOrders = 5;
// Steps of the offloaded fraction of optimizer state.
constexpr double kOffloadParts = 20;

double time_of(const Saving& saving) { return std::max(0.0, saving.seconds); }

std::int64_t freed(const TooLarge& run, const Overrun& lacking, const MemoryForecast& then) {
  const auto less = [](std::size_t before, std::size_t after) {
    return static_cast<std::int64_t>(before) - static_cast<std::int64_t>(after);
  };
  if (lacking.device > 0 || !run.room.host) return less(run.now.peak_bytes(), then.peak_bytes());
  return less(host_need(run.now, *run.room.host), host_need(then, *run.room.host));
}

// True for savings that include the distributed optimizer; most include the remainders.
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

// Evaluates combinations, each once.
class FitSearch {
 public:
  FitSearch(const TooLarge& run,
            const std::vector<Saving>& helpful,
            const Tell& tell,
            const Forecaster& forecast)
      : run_(run),
        tell_(tell),
        forecast_(forecast),
        lacking_(overrun(run.now, run.room)),
        asked_{.config = run.asked, .state = saved_state(run.asked)} {
    for (const Saving& saving : helpful) {
      seen_[saving.words] = overrun(saving.forecast, run.room);
      if (saving.offloaded.size() < 2) continue;
      for (const config::OffloadModule module : saving.offloaded) {
        Saving one{.kind = SavingKind::Offload,
                   .offloaded = {module},
                   .name = base::text("{}{}", kOffload, config::word(module)),
                   .words = {},
                   .seconds = saving.seconds};
        one.bytes = saving.bytes / std::ssize(saving.offloaded);
        parts_[&saving].push_back(std::make_unique<Saving>(std::move(one)));
      }
    }
  }

  // Cheapest sufficient combination. Savings are added in this order, then again starting from each
  // large one, and once without full layers. At equal cost the combination without full layers
  // wins.
  std::optional<Fit> cheapest(const Taken& order) {
    std::optional<Found> best = collect(order, kAnyTime);
    const double most_seconds = best ? best->fit.seconds : kAnyTime;
    const std::vector<Taken> others = other_orders(order);
    std::vector<std::optional<Found>> found(others.size());
    base::parallel(
        static_cast<int>(std::ssize(base::usable_cores())),
        std::ssize(others),
        [&](std::int64_t i) { found[base::at(i)] = collect(others[base::at(i)], most_seconds); });
    for (std::optional<Found>& each : found) {
      if (each && (!best || is_better(*each, *best))) best = std::move(each);
    }
    return best ? std::optional(best->fit) : std::nullopt;
  }

 private:
  struct Found {
    Fit fit;
    bool has_whole_layers = false;
  };

  // First sufficient prefix of `order`, among prefixes cheaper than `most_seconds`; without
  // needless savings.
  std::optional<Found> collect(const Taken& order, double most_seconds) {
    const std::vector<Taken> steps = steps_of(order, most_seconds);
    if (steps.empty() || !suffices(steps.back())) return std::nullopt;
    std::size_t too_few = 0, enough = steps.size();  // indices in steps
    while (enough - too_few > 1) {
      const std::size_t some = (too_few + enough) / 2;
      (suffices(steps[some - 1]) ? enough : too_few) = some;
    }
    return priced(without_needless(steps[enough - 1]));
  }

  std::vector<Taken> other_orders(const Taken& order) const {
    std::vector<Taken> orders{order};
    std::erase_if(orders.back(), is_whole);
    Taken large;
    const std::size_t lacking = lacking_.device > 0 ? lacking_.device : lacking_.host;
    std::ranges::copy_if(order, std::back_inserter(large), [&](const Saving* saving) {
      return base::number(saving->bytes) >= kLarge * base::number(lacking);
    });
    std::ranges::stable_sort(large, std::ranges::greater{}, &Saving::bytes);
    if (large.size() > kMostOrders) large.resize(kMostOrders);
    for (const Saving* first : large) {
      Taken all = order;
      // Full layers would replace it.
      if (first->kind == SavingKind::Recompute) std::erase_if(all, is_whole);
      std::erase(all, first);
      all.insert(all.begin(), first);
      orders.push_back(std::move(all));
    }
    return orders;
  }

  // Prefixes of an order, among savings that combine, cost less than `most_seconds` and fit into
  // host memory.
  std::vector<Taken> steps_of(const Taken& order, double most_seconds) {
    std::vector<Taken> steps;
    Taken taken;
    for (const Saving* saving : order) {
      const Taken more = with(taken, saving);
      const bool costs_more = seconds_of(more) > most_seconds + trifle();
      if (costs_more || !known(more) || !has_host_room(more)) continue;
      steps.push_back(taken = more);
    }
    return steps;
  }

  std::optional<Found> priced(const Taken& taken) {
    const std::optional<Known> whole = known(taken);
    if (!whole) return std::nullopt;
    const Config config = with_least_offload(taken, whole->config);
    const MemoryForecast then = forecast_(config, Priced::Yes);
    if (!then.is_predicted()) return std::nullopt;
    return Found{.fit = {.names = names_of(taken),
                         .words = words_of(run_.asked, config),
                         .peak_bytes = then.peak_bytes(),
                         .seconds = then.step_seconds - run_.now.step_seconds},
                 .has_whole_layers = std::ranges::any_of(taken, is_whole)};
  }

  bool is_better(const Found& one, const Found& other) const {
    const double less = other.fit.seconds - one.fit.seconds;
    if (std::abs(less) > trifle()) return less > 0;
    return std::tuple(one.has_whole_layers, one.fit.names.size()) <
           std::tuple(other.has_whole_layers, other.fit.names.size());
  }

  // Step time too small to count.
  double trifle() const { return kNoTime * run_.now.step_seconds; }

  static bool is_whole(const Saving* saving) { return saving->kind == SavingKind::RecomputeAll; }

  // Adds a saving; full layers replace modules.
  static Taken with(Taken taken, const Saving* saving) {
    if (is_whole(saving)) {
      std::erase_if(taken, [](const Saving* each) { return each->kind == SavingKind::Recompute; });
    }
    taken.push_back(saving);
    return taken;
  }

  // Sum of the single costs. Optimizer offload is unknown here: a fraction of it may suffice.
  static double seconds_of(const Taken& taken) {
    double all = 0;
    for (const Saving* saving : taken) {
      if (saving->kind != SavingKind::OffloadOptimizer) all += saving->seconds;
    }
    return all;
  }

  // Sums the single needs of host memory; if they exceed the room, forecasts the combination.
  bool has_host_room(const Taken& taken) {
    if (!run_.room.host) return true;
    const HostRoom& host = *run_.room.host;
    std::size_t bytes = 0;
    for (const Saving* saving : taken) bytes += saving->host_bytes;
    const std::size_t ranks = base::at(std::min<std::int64_t>(host.ranks, run_.now.layout.world));
    if (host_need(run_.now, host) + ranks * bytes <= host.bytes) return true;
    const std::optional<Overrun> left = look_at(taken);
    return left && left->host <= lacking_.host;
  }

  // Config of a combination, and the effect of its savings.
  struct Known {
    Config config;
    SavedState state;
  };

  // nullopt: one of them changes nothing, or the rules refuse the combination.
  std::optional<Known> known(const Taken& taken) {
    if (taken.empty()) return asked_;
    {
      const std::lock_guard lock(mutex_);
      const auto found = known_.find(taken);
      if (found != known_.end()) return found->second;
    }
    std::optional<Known> last = known({taken.begin(), taken.end() - 1});
    if (last) last = with_another(*last, *taken.back());
    const std::lock_guard lock(mutex_);
    return known_[taken] = last;
  }
  static std::optional<Known> with_another(const Known& before, const Saving& saving) {
    std::optional<Config> config = with_saving(before.config, saving);
    if (!config) return std::nullopt;
    Known after{.config = std::move(*config), .state = {}};
    after.state = saved_state(after.config);
    return is_new(before.state, after.state) ? std::optional(std::move(after)) : std::nullopt;
  }

  // nullopt: not predicted.
  std::optional<Overrun> look_at(const Taken& taken) {
    const std::optional<Known> run = known(taken);
    return run ? look_at(taken, run->config) : std::nullopt;
  }
  std::optional<Overrun> look_at(const Taken& taken, const Config& config) {
    const std::vector<std::string> words = words_of(run_.asked, config);
    {
      const std::lock_guard lock(mutex_);
      const auto found = seen_.find(words);
      if (found != seen_.end()) return found->second;
    }
    tell_(base::text("looking for what fits: {}", fmt::join(names_of(taken), ", ")));
    const MemoryForecast then = forecast_(config, Priced::No);
    std::optional<Overrun> left;
    if (then.is_predicted()) left = overrun(then, run_.room);
    const std::lock_guard lock(mutex_);
    return seen_[words] = left;
  }

  static bool is_enough(const std::optional<Overrun>& left) { return left && left->is_none(); }
  bool suffices(const Taken& taken) { return is_enough(look_at(taken)); }

  // Removes savings that others make redundant, then those the run fits without. Numerics-changing
  // savings go first, then the most expensive, then the smallest.
  Taken without_needless(const Taken& taken) {
    Taken rest = in_parts(taken);
    Taken costly = rest;
    std::ranges::stable_sort(costly, [](const Saving* a, const Saving* b) {
      return std::tuple(b->changes_numerics(), time_of(*b), a->bytes) <
             std::tuple(a->changes_numerics(), time_of(*a), b->bytes);
    });
    for (const Saving* saving : costly) {
      const Taken fewer = without(rest, saving);
      const std::optional<Known> run = known(fewer), all = known(rest);
      if (run && all && !is_new(run->state, all->state)) rest = fewer;
    }
    for (const Saving* saving : costly) {
      const Taken fewer = without(rest, saving);
      if (fewer.empty() || fewer.size() == rest.size()) continue;
      if (suffices(fewer)) rest = fewer;
    }
    return rest;
  }

  static Taken without(Taken taken, const Saving* saving) {
    std::erase(taken, saving);
    return taken;
  }

  // Splits an offload of several modules, without modules that change nothing. The modules stay
  // together if their effect differs one by one.
  Taken in_parts(const Taken& taken) {
    Taken all;
    for (const Saving* saving : taken) {
      Taken whole = all;
      whole.push_back(saving);
      const auto parts = parts_.find(saving);
      all = parts == parts_.end() ? whole : one_by_one(all, whole, parts->second);
    }
    return known(all) ? all : taken;
  }
  Taken one_by_one(Taken all, const Taken& whole, const Parts& parts) {
    for (const std::unique_ptr<Saving>& part : parts) {
      all.push_back(part.get());
      if (!known(all)) all.pop_back();
    }
    const std::optional<Known> apart = known(all), together = known(whole);
    const bool is_same = apart && together && !is_new(apart->state, together->state);
    return is_same ? all : whole;
  }

  // Offloads the least optimizer state that suffices.
  Config with_least_offload(const Taken& taken, Config config) {
    if (!config.optimizer.optimizer_cpu_offload) return config;
    const double before = run_.asked.optimizer.optimizer_cpu_offload
                              ? run_.asked.optimizer.optimizer_offload_fraction
                              : 0;
    const double most = config.optimizer.optimizer_offload_fraction;
    const auto share = [](int parts) { return parts / kOffloadParts; };
    // `few` parts are too few; `enough` parts suffice.
    int few = 0, enough = static_cast<int>(std::ceil(most * kOffloadParts));
    while (share(few + 1) <= before) ++few;
    while (enough - few > 1) {
      const int some = (few + enough) / 2;
      Config less = config;
      less.optimizer.optimizer_offload_fraction = share(some);
      (is_enough(look_at(taken, less)) ? enough : few) = some;
    }
    config.optimizer.optimizer_offload_fraction = std::min(most, share(enough));
    return config;
  }

  // Names offloaded modules together.
  static std::vector<std::string> names_of(const Taken& taken) {
    std::vector<std::string> names;
    std::optional<std::size_t> offload;
    for (const Saving* saving : taken) {
      if (saving->kind == SavingKind::Offload && offload) {
        names[*offload] += ", " + saving->name.substr(kOffload.size());
        continue;
      }
      if (saving->kind == SavingKind::Offload) offload = names.size();
      names.push_back(saving->name);
    }
    return names;
  }

  const TooLarge& run_;
  const Tell& tell_;
  const Forecaster& forecast_;
  const Overrun lacking_;
  const Known asked_;
  std::map<const Saving*, Parts> parts_;
  std::mutex mutex_;  // guards the two below
  std::map<Taken, std::optional<Known>> known_;
  std::map<std::vector<std::string>, std::optional<Overrun>> seen_;
};

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
  sort_by_cost(helpful, run.now.step_seconds);
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
  Taken exact, all;
  for (const Saving& saving : helpful) {
    if (!saving.changes_numerics()) exact.push_back(&saving);
  }
  all = exact;
  for (const Saving& saving : helpful) {
    if (saving.changes_numerics()) all.push_back(&saving);
  }
  FitSearch search(run, helpful, tell, forecast);
  std::optional<Fit> fit = search.cheapest(exact);
  if (!fit && all.size() > exact.size()) fit = search.cheapest(all);
  return fit;
}

}  // namespace weft::measure
