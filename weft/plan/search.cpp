#include "weft/plan/search.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/parallel.h"
#include "weft/base/text.h"
#include "weft/plan/search_candidates.h"
#include "weft/rules/validate.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;

// What one shape came to.
struct ShapeOutcome {
  std::vector<PricedLayout> priced;  // that fit
  std::optional<PricedLayout> best;
  // Where it does not fit: at its smallest.
  std::optional<PricedLayout> smallest;
};

void keep_faster(std::optional<PricedLayout>& best, const PricedLayout& other) {
  if (!best || is_faster(other, *best)) best = other;
}

// Prices the modes of one shape.
class ShapePricing {
 public:
  ShapePricing(const LayoutSpace& space, const LayoutChoice& shape)
      : space_(space), shape_(shape), config_(space.writer().config_of(shape)) {}

  ShapeOutcome price() {
    const std::vector<StepOrder> orders = space_.orders_of(shape_);
    const LayoutChoice frugal = space_.most_frugal(shape_);
    const MemoryPrice least = memory_of(frugal);
    if (!least.fits()) {
      outcome_.smallest = PricedLayout{.choice = frugal, .price = {}};
      outcome_.smallest->price.memory = least;
      return std::move(outcome_);
    }
    for (const std::optional<Number> number : space_.axes().numbers) {
      for (const StepOrder order : orders) {
        price_order({.state = frugal.state, .order = order, .number = number},
                    space_.carriers_of(shape_));
      }
    }
    price_other_state();
    price_frugal_rungs();
    return std::move(outcome_);
  }

 private:
  MemoryPrice memory_of(const LayoutChoice& choice) {
    space_.writer().set_modes(choice, config_);
    return price_memory(config_, space_.hardware(), space_.routing(), space_.book());
  }

  struct Modes {
    StateHolder state = StateHolder::Shared;
    StepOrder order = StepOrder::Plain;
    std::optional<Number> number = {};
  };

  void price_order(const Modes& modes, const std::vector<Carrier>& carriers) {
    LayoutChoice choice = shape_;
    choice.state = modes.state;
    choice.order = modes.order;
    choice.number = modes.number;
    const std::size_t rungs = space_.writer().ladder().size();
    for (choice.recompute = 0; choice.recompute < rungs; ++choice.recompute) {
      if (!space_.goes_with(modes.order, choice.recompute)) continue;
      choice.graphs = space_.graphs_of(choice.recompute).front();
      const MemoryPrice memory = memory_of(choice);
      if (!memory.fits()) continue;
      for (const Carrier carrier : carriers) {
        choice.carrier = carrier;
        add(choice, memory);
      }
      return;
    }
  }

  // What holds the optimizer's state adds to a step whatever its order and its carrier.
  void price_other_state() {
    if (!outcome_.best || space_.axes().states.size() < 2) return;
    const LayoutChoice best = outcome_.best->choice;
    price_order({.state = space_.axes().states.back(), .order = best.order, .number = best.number},
                {best.carrier});
  }

  // The best modes with more recomputation: slower, and smaller.
  void price_frugal_rungs() {
    if (!outcome_.best) return;
    LayoutChoice choice = outcome_.best->choice;
    const std::size_t first = choice.recompute + 1;
    for (choice.recompute = first; choice.recompute < space_.writer().ladder().size();
         ++choice.recompute) {
      if (!space_.goes_with(choice.order, choice.recompute)) choice.order = StepOrder::Plain;
      choice.graphs = space_.graphs_of(choice.recompute).front();
      add(choice, memory_of(choice));
    }
  }

  void add(const LayoutChoice& choice, const MemoryPrice& memory) {
    space_.writer().set_modes(choice, config_);
    PricedLayout layout{.choice = choice,
                        .price = sieve_step(config_, space_.hardware(), space_.routing())};
    layout.price.memory = memory;
    if (!memory.fits()) return;
    keep_faster(outcome_.best, layout);
    outcome_.priced.push_back(std::move(layout));
  }

  const LayoutSpace& space_;
  LayoutChoice shape_;
  Config config_;
  ShapeOutcome outcome_;
};

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
  return text("does not fit even with the most recomputation; most of it are {}",
              largest_component(smallest.price.memory).name);
}

// What rules say of the layouts that were simulated, each asked once.
class RuleBook {
 public:
  explicit RuleBook(const LayoutSpace& space) : space_(space) {}

  const std::string& refusal(const LayoutChoice& choice) {
    const auto known = refusals_.find(choice);
    if (known != refusals_.end()) return known->second;
    return refusals_.emplace(choice, refusal_of(space_, choice)).first->second;
  }

 private:
  const LayoutSpace& space_;
  std::map<LayoutChoice, std::string> refusals_;
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

// The first of each shape that rules allow, until `wanted` are found; `layouts` are sorted. A shape
// of which they allow none is discarded.
std::vector<PricedLayout> rank_legal(const std::vector<PricedLayout>& layouts,
                                     std::size_t wanted,
                                     RuleBook& rules,
                                     DiscardPile& discarded) {
  std::vector<PricedLayout> ranked;
  std::map<LayoutChoice, bool> is_ranked;       // by shape
  std::map<LayoutChoice, std::size_t> refused;  // by shape: where it was first
  for (std::size_t at = 0; at < layouts.size() && ranked.size() < wanted; ++at) {
    const LayoutChoice shape = shape_of(layouts[at].choice);
    if (is_ranked[shape]) continue;
    if (rules.refusal(layouts[at].choice).empty()) {
      is_ranked[shape] = true;
      ranked.push_back(layouts[at]);
    } else {
      refused.try_emplace(shape, at);
    }
  }
  for (const auto& [shape, at] : refused) {
    if (is_ranked[shape]) continue;
    // The rule, and what it says of the first of them.
    const std::string& why = rules.refusal(layouts[at].choice);
    const std::size_t colon = why.find(": ");
    discarded.add("refused by " + why.substr(0, colon),
                  layouts[at].choice,
                  base::number(static_cast<std::int64_t>(at)),
                  why.substr(colon + 2));
  }
  return ranked;
}

// The front of what rules allow.
std::vector<PricedLayout> legal_front(std::vector<PricedLayout> all, RuleBook& rules) {
  while (true) {
    std::vector<PricedLayout> front = front_of(all);
    const auto is_refused = [&](const PricedLayout& layout) {
      return !rules.refusal(layout.choice).empty();
    };
    if (std::ranges::none_of(front, is_refused)) return front;
    std::set<LayoutChoice> refused;
    for (const PricedLayout& layout : front) {
      if (is_refused(layout)) refused.insert(layout.choice);
    }
    std::erase_if(all, [&](const PricedLayout& layout) { return refused.contains(layout.choice); });
  }
}

// The first of `layouts`, which are sorted, that rules allow and that is as asked.
std::optional<PricedLayout> first_legal(const std::vector<PricedLayout>& layouts,
                                        RuleBook& rules,
                                        const std::function<bool(const LayoutChoice&)>& is_asked) {
  for (const PricedLayout& layout : layouts) {
    if (is_asked(layout.choice) && rules.refusal(layout.choice).empty()) return layout;
  }
  return std::nullopt;
}

// Runs `body` for each of `all`, some at a time, and tells who watches.
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

// Runs whose layers are the same whatever the pipeline, the optimizer and the graphs.
std::string run_name(const LayoutChoice& choice) {
  return text("{} {} {} {} {} {} {} {} {}",
              choice.tp,
              choice.cp,
              choice.ep,
              choice.etp,
              choice.mbs,
              static_cast<int>(choice.carrier),
              static_cast<int>(choice.order),
              choice.recompute,
              choice.number ? static_cast<int>(*choice.number) : -1);
}

// Shapes that are simulated in all their good modes, at least.
constexpr std::size_t kSimulatedShapes = 64;

}  // namespace

std::string refusal_of(const LayoutSpace& space, const LayoutChoice& choice) {
  const rules::Verdict verdict = rules::judge(space.writer().config_of(choice));
  if (verdict.legal()) return "";
  const config::Finding& error = verdict.errors.front();
  return text("rule {}: {}", error.id, error.message);
}

std::vector<MemoryComponent> memory_components(const MemoryPrice& memory) {
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer states", memory.optimizer},
          {"activations", memory.activations},
          {"logits", memory.logits},
          {"buffers", memory.buffers}};
}

MemoryComponent largest_component(const MemoryPrice& memory) {
  const std::vector<MemoryComponent> all = memory_components(memory);
  return *std::ranges::max_element(all, {}, &MemoryComponent::bytes);
}

std::string ms_text(double ms) { return ms >= 1000 ? text("{:.0f}", ms) : text("{:.4g}", ms); }

std::string lack_text(const MemoryPrice& memory) {
  const MemoryComponent largest = largest_component(memory);
  return text("{:.2f} GB more than there is, of which {} {:.1f} GB",
              (memory.total() - memory.capacity) * 1e-9,
              largest.name,
              largest.bytes * 1e-9);
}

SearchResult search_layouts(const LayoutSpace& space,
                            std::size_t top,
                            int threads,
                            const SearchWatch& watch) {
  const LayoutSpace::Shapes shapes = space.shapes();
  std::vector<ShapeOutcome> outcomes(shapes.all.size());
  for_each_watched("shapes", std::ssize(shapes.all), 64, threads, watch, [&](std::size_t i) {
    outcomes[i] = ShapePricing(space, shapes.all[i]).price();
  });

  SearchResult result;
  result.shapes = std::ssize(shapes.all);
  DiscardPile discarded;
  SearchCandidates candidates(space);
  for (const auto& [why, count] : shapes.refused) discarded.add_all(why, count);
  for (const ShapeOutcome& outcome : outcomes) {
    if (outcome.smallest) {
      discarded.add(memory_reason(*outcome.smallest),
                    outcome.smallest->choice,
                    lacking(*outcome.smallest),
                    lack_text(outcome.smallest->price.memory));
      if (!result.nearest || lacking(*outcome.smallest) < lacking(*result.nearest)) {
        result.nearest = outcome.smallest;
      }
      continue;
    }
    result.priced += std::ssize(outcome.priced);
    if (!outcome.best) continue;
    ++result.fitting;
    candidates.add_shape(outcome.priced, *outcome.best);
  }
  if (result.fitting > 0) result.nearest.reset();

  std::vector<PricedLayout> layouts = candidates.take(std::max(kSimulatedShapes, top + top / 2));
  result.simulated = std::ssize(layouts);
  SimulatedLayers simulated;
  for_each_watched("schedules", result.simulated, 4, threads, watch, [&](std::size_t i) {
    const Config config = space.writer().config_of(layouts[i].choice);
    layouts[i].price = price_step(config,
                                  space.hardware(),
                                  space.routing(),
                                  {.layers = &simulated, .run = run_name(layouts[i].choice)});
    layouts[i].price.memory = price_memory(config, space.hardware(), space.routing(), space.book());
  });
  // What carries tokens keeps some of them, which the sieve does not ask.
  std::erase_if(layouts, [](const PricedLayout& layout) { return !layout.price.memory.fits(); });
  std::ranges::sort(layouts, is_faster);
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
  result.front = legal_front(std::move(layouts), rules);
  result.discarded = discarded.take();
  return result;
}

}  // namespace weft::plan
