#include "weft/plan/search.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "weft/base/casts.h"
#include "weft/base/parallel.h"
#include "weft/base/text.h"
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

bool is_faster(const PricedLayout& a, const PricedLayout& b) {
  if (a.price.step_ms != b.price.step_ms) return a.price.step_ms < b.price.step_ms;
  if (a.price.memory.total() != b.price.memory.total()) {
    return a.price.memory.total() < b.price.memory.total();
  }
  return a.choice < b.choice;
}

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
    for (const StepOrder order : orders) {
      price_order(frugal.state, order, space_.carriers_of(shape_));
    }
    price_other_state();
    price_frugal_rungs();
    return std::move(outcome_);
  }

 private:
  MemoryPrice memory_of(const LayoutChoice& choice) {
    space_.writer().set_modes(choice, config_);
    return price_memory(config_, space_.hardware());
  }

  void price_order(StateHolder state, StepOrder order, const std::vector<Carrier>& carriers) {
    LayoutChoice choice = shape_;
    choice.state = state;
    choice.order = order;
    const std::size_t rungs = space_.writer().ladder().size();
    for (choice.recompute = 0; choice.recompute < rungs; ++choice.recompute) {
      if (!space_.goes_with(order, choice.recompute)) continue;
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
    price_order(space_.axes().states.back(), best.order, {best.carrier});
  }

  // The best modes with more recomputation: slower, and smaller.
  void price_frugal_rungs() {
    if (!outcome_.best) return;
    LayoutChoice choice = outcome_.best->choice;
    const std::size_t first = choice.recompute + 1;
    for (choice.recompute = first; choice.recompute < space_.writer().ladder().size();
         ++choice.recompute) {
      if (!space_.goes_with(choice.order, choice.recompute)) choice.order = StepOrder::Plain;
      add(choice, memory_of(choice));
    }
  }

  void add(const LayoutChoice& choice, const MemoryPrice& memory) {
    space_.writer().set_modes(choice, config_);
    PricedLayout layout{.choice = choice, .price = price_step(config_, space_.hardware())};
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

// Takes out what rules refuse, until `wanted` are legal; how many are.
std::size_t judge_first(const LayoutSpace& space,
                        std::size_t wanted,
                        std::vector<PricedLayout>& layouts,
                        DiscardPile& discarded) {
  std::vector<PricedLayout> legal;
  std::size_t at = 0;
  for (; at < layouts.size() && legal.size() < wanted; ++at) {
    const std::string why = refusal_of(space, layouts[at].choice);
    if (why.empty()) {
      legal.push_back(layouts[at]);
    } else {
      // The rule, and what it says of the first of them.
      const std::size_t colon = why.find(": ");
      discarded.add("refused by " + why.substr(0, colon),
                    layouts[at].choice,
                    base::number(static_cast<std::int64_t>(at)),
                    why.substr(colon + 2));
    }
  }
  const std::size_t count = legal.size();
  legal.insert(legal.end(), layouts.begin() + static_cast<std::ptrdiff_t>(at), layouts.end());
  layouts = std::move(legal);
  return count;
}

// Fastest first; every one is smaller than all before it.
std::vector<PricedLayout> front_of(std::vector<PricedLayout> all) {
  std::ranges::sort(all, is_faster);
  std::vector<PricedLayout> front;
  for (const PricedLayout& layout : all) {
    const double least = front.empty() ? 0 : front.back().price.memory.total();
    if (front.empty() || layout.price.memory.total() < least) front.push_back(layout);
  }
  return front;
}

void keep_if_legal(const LayoutSpace& space, std::optional<PricedLayout>& layout) {
  if (layout && !refusal_of(space, layout->choice).empty()) layout.reset();
}

// The front of what rules allow.
std::vector<PricedLayout> legal_front(const LayoutSpace& space, std::vector<PricedLayout> all) {
  while (true) {
    std::vector<PricedLayout> front = front_of(all);
    std::vector<LayoutChoice> refused;
    for (const PricedLayout& layout : front) {
      if (!refusal_of(space, layout.choice).empty()) refused.push_back(layout.choice);
    }
    if (refused.empty()) return front;
    std::erase_if(all, [&](const PricedLayout& layout) {
      return std::ranges::find(refused, layout.choice) != refused.end();
    });
  }
}

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
  std::mutex watching;
  std::int64_t done = 0;
  constexpr std::int64_t kPart = 64;
  const std::int64_t all = std::ssize(shapes.all), parts = (all + kPart - 1) / kPart;
  base::parallel(threads, parts, [&](std::int64_t part) {
    const std::int64_t end = std::min(all, (part + 1) * kPart);
    for (std::int64_t i = part * kPart; i < end; ++i) {
      outcomes[base::at(i)] = ShapePricing(space, shapes.all[base::at(i)]).price();
    }
    const std::lock_guard lock(watching);
    done += end - part * kPart;
    if (watch) watch(done, all);
  });

  SearchResult result;
  result.shapes = all;
  DiscardPile discarded;
  for (const auto& [why, count] : shapes.refused) discarded.add_all(why, count);
  std::vector<PricedLayout> everything;
  for (ShapeOutcome& outcome : outcomes) {
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
    result.ranked.push_back(*outcome.best);
    for (const PricedLayout& layout : outcome.priced) {
      keep_faster(result.best_of_order[static_cast<std::size_t>(layout.choice.order)], layout);
      const bool full = space.writer().ladder().at(layout.choice.recompute).is_full;
      if (full) keep_faster(result.best_full, layout);
    }
    std::ranges::move(front_of(std::move(outcome.priced)), std::back_inserter(everything));
  }
  for (std::optional<PricedLayout>& best : result.best_of_order) keep_if_legal(space, best);
  keep_if_legal(space, result.best_full);
  if (result.fitting > 0) result.nearest.reset();
  std::ranges::sort(result.ranked, is_faster);
  result.judged = judge_first(space, top, result.ranked, discarded);
  result.front = legal_front(space, std::move(everything));
  result.discarded = discarded.take();
  return result;
}

}  // namespace weft::plan
