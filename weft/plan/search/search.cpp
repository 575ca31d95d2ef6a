#include "weft/plan/search/search.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/parallel/parallel.h"
#include "weft/base/text.h"
#include "weft/plan/memory/memory_text.h"
#include "weft/plan/price/price_memory.h"
#include "weft/plan/price/shape_pricing.h"
#include "weft/plan/search/layout_ties.h"
#include "weft/plan/search/search_candidates.h"
#include "weft/rules/validate.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;

double lacking(const PricedLayout& layout) {
  return layout.price.memory.total() - layout.price.memory.capacity;
}

// Counts discarded shapes by reason.
class DiscardPile {
 public:
  void add(const std::string& why,
           const LayoutChoice& choice,
           double distance,
           const std::string& lack) {
    Heap& heap = heaps_[why];
    ++heap.layouts;
    const bool nearer = !heap.nearest || distance < heap.distance;
    if (!nearer) return;
    heap.nearest = choice;
    heap.distance = distance;
    heap.lack = lack;
  }
  void add_all(const std::string& why, std::int64_t layouts) { heaps_[why].layouts += layouts; }

  std::vector<DiscardedLayouts> take() const {
    std::vector<DiscardedLayouts> all;
    for (const auto& [why, heap] : heaps_) {
      all.push_back(
          {.why = why, .layouts = heap.layouts, .nearest = heap.nearest, .lack = heap.lack});
    }
    std::ranges::stable_sort(all, [](const DiscardedLayouts& a, const DiscardedLayouts& b) {
      if (a.nearest.has_value() != b.nearest.has_value()) return a.nearest.has_value();
      return a.layouts > b.layouts;
    });
    return all;
  }

 private:
  struct Heap {
    std::int64_t layouts = 0;
    std::optional<LayoutChoice> nearest;
    double distance = 0;
    std::string lack;
  };
  std::map<std::string, Heap> heaps_;
};

std::string memory_reason(const PricedLayout& smallest) {
  return text("does not fit on the GPU even with the most recomputation; most of it are {}",
              largest_component(smallest.price.memory).name);
}

// Caches the rules' answers about simulated layouts, and the counted memory of shown layouts.
class RuleBook {
 public:
  explicit RuleBook(const LayoutSpace& space) : space_(space) {}

  const std::string& refusal(const LayoutChoice& choice) {
    const auto known = refusals_.find(choice);
    if (known != refusals_.end()) return known->second;
    return refusals_.emplace(choice, refusal_of(space_, choice)).first->second;
  }

  // Layout with its shown memory; refuses one that does not fit then.
  std::optional<PricedLayout> shown(PricedLayout layout) {
    if (!space_.counts()) return layout;
    take_count(layout);
    if (layout.is_counted) return layout;
    MemoryPrice& memory = layout.price.memory;
    memory = price_memory(space_.writer().config_of(layout.choice),
                          space_.hardware(),
                          space_.routing(),
                          space_.shown());
    layout.is_counted = true;
    counted_[layout.choice] = memory;
    if (memory.fits()) return layout;
    refusals_[layout.choice] = "the count of its memory: " + lack_text(memory);
    return std::nullopt;
  }

  // Uses the counted memory wherever a counted layout is shown.
  void take_count(PricedLayout& layout) const {
    const auto counted = counted_.find(layout.choice);
    if (counted == counted_.end()) return;
    layout.price.memory = counted->second;
    layout.is_counted = true;
  }

 private:
  const LayoutSpace& space_;
  std::map<LayoutChoice, std::string> refusals_;
  std::map<LayoutChoice, MemoryPrice> counted_;
};

LayoutChoice shape_of(const LayoutChoice& choice) {
  return {.tp = choice.tp,
          .pp = choice.pp,
          .vpp = choice.vpp,
          .cp = choice.cp,
          .ep = choice.ep,
          .etp = choice.etp,
          .mbs = choice.mbs};
}

// First legal layout of each shape, up to `wanted`; `layouts` are sorted. A shape without a legal
// layout is discarded.
std::vector<PricedLayout> rank_legal(const std::vector<PricedLayout>& layouts,
                                     std::size_t wanted,
                                     RuleBook& rules,
                                     DiscardPile& discarded) {
  std::vector<PricedLayout> ranked;
  std::map<LayoutChoice, bool> is_ranked;       // by shape
  std::map<LayoutChoice, std::size_t> refused;  // by shape: index of the first refused layout
  for (std::size_t at = 0; at < layouts.size() && ranked.size() < wanted; ++at) {
    const LayoutChoice shape = shape_of(layouts[at].choice);
    if (is_ranked[shape]) continue;
    const bool is_legal = rules.refusal(layouts[at].choice).empty();
    std::optional<PricedLayout> shown = is_legal ? rules.shown(layouts[at]) : std::nullopt;
    if (shown) {
      is_ranked[shape] = true;
      ranked.push_back(std::move(*shown));
    } else {
      refused.try_emplace(shape, at);
    }
  }
  for (const auto& [shape, at] : refused) {
    if (is_ranked[shape]) continue;
    // Rule, and its text about the first of them.
    const std::string& why = rules.refusal(layouts[at].choice);
    const std::size_t colon = why.find(": ");
    discarded.add("refused by " + why.substr(0, colon),
                  layouts[at].choice,
                  base::number(static_cast<std::int64_t>(at)),
                  why.substr(colon + 2));
  }
  return ranked;
}

// Pareto front of legal layouts, by formula; ranked ones have counted memory.
std::vector<PricedLayout> legal_front(std::vector<PricedLayout> all, RuleBook& rules) {
  while (true) {
    std::vector<PricedLayout> front = front_of(all);
    const auto is_refused = [&](const PricedLayout& layout) {
      return !rules.refusal(layout.choice).empty();
    };
    if (std::ranges::none_of(front, is_refused)) {
      for (PricedLayout& layout : front) rules.take_count(layout);
      return front;
    }
    std::set<LayoutChoice> refused;
    for (const PricedLayout& layout : front) {
      if (is_refused(layout)) refused.insert(layout.choice);
    }
    std::erase_if(all, [&](const PricedLayout& layout) { return refused.contains(layout.choice); });
  }
}

// First safe layout of the sorted `layouts`, by the shown memory.
std::optional<PricedLayout> first_safe(const std::vector<PricedLayout>& layouts, RuleBook& rules) {
  for (const PricedLayout& layout : layouts) {
    if (!is_safe(layout) || !rules.refusal(layout.choice).empty()) continue;
    std::optional<PricedLayout> shown = rules.shown(layout);
    if (shown && is_safe(*shown)) return shown;
  }
  return std::nullopt;
}

// First legal layout of the sorted `layouts` with the asked property.
std::optional<PricedLayout> first_legal(const std::vector<PricedLayout>& layouts,
                                        RuleBook& rules,
                                        const std::function<bool(const LayoutChoice&)>& is_asked) {
  for (const PricedLayout& layout : layouts) {
    if (is_asked(layout.choice) && rules.refusal(layout.choice).empty()) return layout;
  }
  return std::nullopt;
}

// Runs `body` for each of `all`, `at_once` at a time, with progress.
void for_each_watched(std::string_view what,
                      std::int64_t all,
                      std::int64_t at_once,
                      int threads,
                      const SearchWatch& watch,
                      const std::function<void(std::size_t)>& body) {
  std::mutex watching;
  std::int64_t done = 0;
  const std::int64_t parts = (all + at_once - 1) / at_once;
  base::parallel(threads, parts, [&](std::int64_t part) {
    const std::int64_t end = std::min(all, (part + 1) * at_once);
    for (std::int64_t i = part * at_once; i < end; ++i) {
      if (watch.stop && watch.stop->load()) throw SearchStopped();
      body(base::at(i));
    }
    const std::lock_guard lock(watching);
    done += end - part * at_once;
    if (watch.show) watch.show(what, done, all);
  });
}

// Least number of shapes simulated in all their good modes.
constexpr std::size_t kSimulatedShapes = 64;
// Without a resident fit: number of shapes tried at once, and number of fits that ends the search.
constexpr std::size_t kOffloadShapes = 96, kOffloadsWanted = 32;
// Largest slowdown by formula of a layout that may become the best in simulation.
constexpr double kWorthOffloading = 1.04;
// Slowdown above which a shape is not priced on every rung of recomputation.
constexpr double kWorthRungs = 1.5;
// Shapes priced at once.
constexpr std::int64_t kAtOnce = 64;

double best_of(const std::vector<ShapeOutcome>& outcomes) {
  double best = 0;
  for (const ShapeOutcome& outcome : outcomes) {
    if (!outcome.best) continue;
    const double step = outcome.best->price.step_ms;
    if (best == 0 || step < best) best = step;
  }
  return best;
}

// A shape that does not fit with a micro-batch does not fit with a larger one.
bool has_larger_batch(const LayoutChoice& shape, LayoutChoice smaller) {
  const bool is_larger = shape.mbs > smaller.mbs;
  smaller.mbs = shape.mbs;
  return is_larger && smaller == shape;
}

// Prices every shape with nothing on the host. Micro-batch size is the innermost axis.
std::vector<ShapeOutcome> price_shapes(const LayoutSpace& space,
                                       const std::vector<LayoutChoice>& shapes,
                                       int threads,
                                       const SearchWatch& watch) {
  std::vector<ShapeOutcome> outcomes(shapes.size());
  for_each_watched("shapes", std::ssize(shapes), kAtOnce, threads, watch, [&](std::size_t i) {
    const bool is_first = i % base::at(kAtOnce) == 0;  // another thread has the previous one
    if (!is_first && outcomes[i - 1].smallest && has_larger_batch(shapes[i], shapes[i - 1])) {
      outcomes[i].smallest = outcomes[i - 1].smallest;
      outcomes[i].wants_room = true;
    } else {
      outcomes[i] = price_shape(space, shapes[i]);
    }
  });
  const double best = best_of(outcomes);
  for_each_watched("rungs", std::ssize(shapes), kAtOnce, threads, watch, [&](std::size_t i) {
    const std::optional<PricedLayout>& own = outcomes[i].best;
    if (!own || own->price.step_ms > kWorthRungs * best) return;
    std::ranges::move(price_rungs(space, own->choice), std::back_inserter(outcomes[i].priced));
  });
  return outcomes;
}

// True if the bytes besides activations fit. If only activations can be offloaded, other shapes are
// not tried.
bool has_room_for_state(const ShapeOutcome& outcome) {
  if (!outcome.smallest) return true;
  const MemoryPrice& memory = outcome.smallest->price.memory;
  return memory.weights + memory.gradients + memory.optimizer + memory.reserved <= memory.capacity;
}

// Offloading layouts of every shape that could be among the best. Optimizer state is offloaded only
// if nothing else fits: its price assumes Weft's AdamW, and published runs of another program took
// several times as long.
std::vector<std::vector<PricedLayout>> search_offloads(const LayoutSpace& space,
                                                       const std::vector<LayoutChoice>& shapes,
                                                       const std::vector<ShapeOutcome>& outcomes,
                                                       int threads,
                                                       const SearchWatch& watch) {
  std::vector<std::vector<PricedLayout>> found;
  if (!space.may_offload()) return found;
  const double best = best_of(outcomes);
  const auto is_tried = [&](std::size_t i) {
    return outcomes[i].wants_room && (best == 0 || has_room_for_state(outcomes[i]));
  };
  std::vector<double> least(shapes.size());
  for_each_watched("bounds", std::ssize(shapes), kAtOnce, threads, watch, [&](std::size_t i) {
    if (is_tried(i)) least[i] = least_step_ms(space, shapes[i]);
  });
  const double limit =
      best == 0 ? std::numeric_limits<double>::infinity() : kWorthOffloading * best;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (is_tried(i) && least[i] < limit) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return least[i]; });
  // If something fits, tries all that could beat it; otherwise the fastest that fit at all.
  const std::size_t at_once = best == 0 ? kOffloadShapes : order.size();
  const auto try_all = [&](std::size_t most_state) {
    for (std::size_t from = 0; from < order.size() && found.size() < kOffloadsWanted;
         from += at_once) {
      std::vector<std::vector<PricedLayout>> tried(std::min(at_once, order.size() - from));
      for_each_watched("offloading", std::ssize(tried), 8, threads, watch, [&](std::size_t i) {
        tried[i] = price_offloads(space,
                                  shapes[order[from + i]],
                                  {.limit_ms = limit, .most_state = most_state});
      });
      std::erase_if(tried, [](const auto& layouts) { return layouts.empty(); });
      std::ranges::move(tried, std::back_inserter(found));
    }
  };
  try_all(0);
  if (best == 0 && found.empty()) try_all(space.axes().most_host_state);
  return found;
}

// Shape that lacks least with maximal offload.
std::optional<PricedLayout> nearest_of(const LayoutSpace& space,
                                       const std::vector<LayoutChoice>& shapes) {
  std::optional<PricedLayout> nearest;
  for (const LayoutChoice& shape : shapes) {
    PricedLayout smallest = smallest_of_shape(space, shape);
    if (!nearest || lacking(smallest) < lacking(*nearest)) nearest = std::move(smallest);
  }
  return nearest;
}

// Rule violations of the smallest shape under the pinned keys.
std::vector<std::string> refusals_of_smallest(const LayoutSpace& space) {
  const LayoutAxes& axes = space.axes();
  const LayoutChoice smallest{.tp = axes.tp.front(),
                              .pp = axes.pp.front(),
                              .vpp = axes.vpp.front(),
                              .cp = axes.cp.front(),
                              .ep = axes.ep.front(),
                              .etp = axes.etp.front(),
                              .mbs = axes.mbs.front()};
  std::vector<std::string> all;
  for (const config::Finding& error : rules::judge(space.writer().config_of(smallest)).errors) {
    all.push_back(
        text("rule {}: {}{}", error.id, error.message, error.fix.empty() ? "" : "; " + error.fix));
  }
  return all;
}

}  // namespace

std::string refusal_of(const LayoutSpace& space, const LayoutChoice& choice) {
  const rules::Verdict verdict = rules::judge(space.writer().config_of(choice));
  if (verdict.legal()) return "";
  const config::Finding& error = verdict.errors.front();
  return text("rule {}: {}", error.id, error.message);
}

bool is_safe(const PricedLayout& layout) {
  const MemoryPrice& memory = layout.price.memory;
  const Graphs graphs = layout.choice.graphs;
  const bool captures = graphs == Graphs::Scoped || graphs == Graphs::Whole;
  return !captures && !is_offloading(layout.choice) && memory.fits() &&
         memory.total() <= kSafeShare * memory.capacity;
}

std::vector<MemoryComponent> memory_components(const MemoryPrice& memory) {
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer states", memory.optimizer},
          {"activations", memory.activations},
          {"logits", memory.logits},
          {"buffers", memory.buffers},
          {"CUDA graphs", memory.graphs}};
}

MemoryComponent largest_component(const MemoryPrice& memory) {
  const std::vector<MemoryComponent> all = memory_components(memory);
  return *std::ranges::max_element(all, {}, &MemoryComponent::bytes);
}

std::string lack_text(const MemoryPrice& memory) {
  // A lack below two decimals of a GiB must still print as a lack.
  const auto lack = [](double bytes) {
    constexpr double kInMib = 0.1 * kGib;
    return bytes >= kInMib ? text("{:.2f} GiB", in_gib(bytes))
                           : text("{:.1f} MiB", std::max(0.1, bytes / kMib));
  };
  if (memory.total() <= memory.capacity) {
    return text("{} of the host's memory more than there is",
                lack(memory.host - memory.host_capacity));
  }
  const MemoryComponent largest = largest_component(memory);
  return text("{} more than there is, of which {} {:.1f} GiB",
              lack(memory.total() - memory.capacity),
              largest.name,
              in_gib(largest.bytes));
}

SearchResult search_layouts(const LayoutSpace& space,
                            std::size_t top,
                            int threads,
                            const SearchWatch& watch) {
  const LayoutSpace::Shapes shapes = space.shapes();
  const std::vector<ShapeOutcome> outcomes = price_shapes(space, shapes.all, threads, watch);
  const std::vector<std::vector<PricedLayout>> offloads =
      search_offloads(space, shapes.all, outcomes, threads, watch);

  SearchResult result;
  result.shapes = std::ssize(shapes.all);
  if (shapes.all.empty()) result.refusals = refusals_of_smallest(space);
  DiscardPile discarded;
  SearchCandidates candidates(space);
  for (const auto& [why, count] : shapes.refused) discarded.add_all(why, count);
  for (const ShapeOutcome& outcome : outcomes) {
    if (outcome.smallest) {
      discarded.add(memory_reason(*outcome.smallest),
                    outcome.smallest->choice,
                    lacking(*outcome.smallest),
                    lack_text(outcome.smallest->price.memory));
      continue;
    }
    result.priced += std::ssize(outcome.priced);
    if (!outcome.best) continue;
    ++result.fitting;
    candidates.add_shape(outcome.priced, *outcome.best);
  }
  for (const std::vector<PricedLayout>& layouts : offloads) {
    result.priced += std::ssize(layouts);
    ++result.offloading;
    candidates.add_offloads(layouts);
  }
  if (result.fitting + result.offloading == 0) result.nearest = nearest_of(space, shapes.all);

  std::vector<PricedLayout> layouts = candidates.take(std::max(kSimulatedShapes, top + top / 2));
  result.simulated = std::ssize(layouts);
  for_each_watched("schedules", result.simulated, 4, threads, watch, [&](std::size_t i) {
    const Config config = space.writer().config_of(layouts[i].choice);
    layouts[i].price =
        price_step(config, space.hardware(), space.routing(), space.simulated(layouts[i].choice));
    layouts[i].price.memory = price_memory(config, space.hardware(), space.routing(), space.book());
  });
  // Dispatchers keep some tokens, which the formula ignores.
  std::erase_if(layouts, [](const PricedLayout& layout) { return !layout.price.memory.fits(); });
  std::ranges::sort(layouts, is_faster);
  layouts = simpler_first(std::move(layouts), space);
  RuleBook rules(space);
  result.ranked = rank_legal(layouts, std::max(top, std::size_t{1}), rules, discarded);
  for (std::size_t order = 0; order < kStepOrders; ++order) {
    result.best_of_order[order] = first_legal(layouts, rules, [&](const LayoutChoice& choice) {
      return static_cast<std::size_t>(choice.order) == order;
    });
  }
  result.best_full = first_legal(layouts, rules, [&](const LayoutChoice& choice) {
    return space.writer().ladder().at(choice.recompute).is_full;
  });
  result.best_resident = first_legal(layouts, rules, [](const LayoutChoice& choice) {
    return !is_offloading(choice);
  });
  result.best_offloading = first_legal(layouts, rules, is_offloading);
  result.best_safe = first_safe(layouts, rules);
  result.front = legal_front(std::move(layouts), rules);
  result.discarded = discarded.take();
  return result;
}

}  // namespace weft::plan
