#include "weft/plan/price/shape_pricing.h"

#include <algorithm>

#include "weft/plan/price/price_memory.h"
#include "weft/plan/search/search_candidates.h"

namespace weft::plan {
namespace {

using config::Config;

// Offloading layouts kept per order.
constexpr std::size_t kOffloadsOfOrder = 2;

void keep_faster(std::optional<PricedLayout>& best, const PricedLayout& other) {
  if (!best || is_faster(other, *best)) best = other;
}

// Prices layouts of one shape.
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
      outcome_.wants_room = true;
      return std::move(outcome_);
    }
    for (const std::optional<DType> number : space_.axes().numbers) {
      for (const StepOrder order : orders) {
        price_order({.state = frugal.state, .order = order, .number = number},
                    space_.carriers_of(shape_));
      }
    }
    price_other_state();
    if (outcome_.best) price_rung(space_.writer().ladder().size() - 1, outcome_.best->choice);
    return std::move(outcome_);
  }

  std::vector<PricedLayout> rungs(const LayoutChoice& from) {
    const std::size_t last = space_.writer().ladder().size() - 1;
    for (std::size_t rung = from.recompute + 1; rung < last; ++rung) price_rung(rung, from);
    return std::move(outcome_.priced);
  }

  double least_step_ms() {
    double least = 0;
    const std::vector<StepOrder> orders = space_.orders_of(shape_);
    for (const StepOrder order : {orders.front(), orders.back()}) {
      LayoutChoice choice = shape_;
      choice.order = order;
      choice.carrier = space_.carriers_of(shape_).back();
      choice.state = space_.axes().states.front();
      choice.number = space_.axes().numbers.front();
      choice.graphs = space_.graphs_of(choice).front();
      const double step = sieved(choice).step_ms;
      if (least == 0 || step < least) least = step;
    }
    return least;
  }

  std::vector<PricedLayout> offloads(const OffloadLimit& limit) {
    std::vector<PricedLayout> all;
    for (const std::optional<DType> number : space_.axes().numbers) {
      for (const StepOrder order : space_.orders_of(shape_)) {
        const std::vector<PricedLayout> of_order =
            offloads_of({.state = space_.axes().states.front(), .order = order, .number = number},
                        limit);
        all.insert(all.end(), of_order.begin(), of_order.end());
      }
    }
    std::ranges::sort(all, is_faster);
    return all;
  }

  PricedLayout smallest() {
    PricedLayout layout{.choice = space_.most_offloaded(shape_), .price = {}};
    LayoutChoice& choice = layout.choice;
    MemoryPrice& memory = layout.price.memory;
    memory = memory_of(choice);
    while (!memory.fits_host() && choice.host_state + choice.offload > 0) {
      --(choice.host_state > 0 ? choice.host_state : choice.offload);
      memory = memory_of(choice);
    }
    return layout;
  }

 private:
  MemoryPrice memory_of(const LayoutChoice& choice) {
    space_.writer().set_modes(choice, config_);
    return price_memory(config_, space_.hardware(), space_.routing(), space_.book());
  }

  Price sieved(const LayoutChoice& choice) {
    space_.writer().set_modes(choice, config_);
    return sieve_step(config_, space_.hardware(), space_.routing(), space_.sieve());
  }

  struct Modes {
    StateHolder state = StateHolder::Shared;
    StepOrder order = StepOrder::Plain;
    std::optional<DType> number = {};
  };

  LayoutChoice in_modes(const Modes& modes) const {
    LayoutChoice choice = shape_;
    choice.state = modes.state;
    choice.order = modes.order;
    choice.number = modes.number;
    return choice;
  }

  void price_order(const Modes& modes, const std::vector<Carrier>& carriers) {
    LayoutChoice choice = in_modes(modes);
    const std::size_t rungs = space_.writer().ladder().size();
    for (choice.recompute = 0; choice.recompute < rungs; ++choice.recompute) {
      if (!space_.order_allows(modes.order, choice.recompute)) continue;
      choice.carrier = Carrier::Given;
      choice.graphs = space_.graphs_of(choice).front();
      const MemoryPrice memory = memory_of(choice);
      if (!memory.fits()) {
        outcome_.wants_room = true;
        continue;
      }
      for (const Carrier carrier : carriers) {
        choice.carrier = carrier;
        add(choice, memory);
      }
      break;
    }
    price_whole_step(modes, carriers);
  }

  // A captured whole step keeps other tensors: finds its first fitting rung.
  void price_whole_step(const Modes& modes, const std::vector<Carrier>& carriers) {
    LayoutChoice choice = in_modes(modes);
    choice.carrier = carriers.back();
    const std::size_t rungs = space_.writer().ladder().size();
    for (choice.recompute = 0; choice.recompute < rungs; ++choice.recompute) {
      if (!space_.order_allows(modes.order, choice.recompute)) continue;
      choice.graphs = space_.graphs_of(choice).front();
      if (choice.graphs != Graphs::Whole) return;
      const MemoryPrice memory = memory_of(choice);
      if (!memory.fits()) continue;
      add(choice, memory);
      return;
    }
  }

  // The cost of the optimizer's placement is independent of order and dispatcher.
  void price_other_state() {
    if (!outcome_.best || space_.axes().states.size() < 2) return;
    const LayoutChoice best = outcome_.best->choice;
    price_order({.state = space_.axes().states.back(), .order = best.order, .number = best.number},
                {best.carrier});
  }

  // Prices the modes with more recomputation.
  void price_rung(std::size_t rung, LayoutChoice choice) {
    if (rung <= choice.recompute) return;
    choice.recompute = rung;
    if (!space_.order_allows(choice.order, choice.recompute)) choice.order = StepOrder::Plain;
    choice.graphs = space_.graphs_of(choice).front();
    add(choice, memory_of(choice));
  }

  void add(const LayoutChoice& choice, const MemoryPrice& memory) {
    PricedLayout layout{.choice = choice, .price = sieved(choice)};
    layout.price.memory = memory;
    if (!memory.fits()) return;
    keep_faster(outcome_.best, layout);
    outcome_.priced.push_back(std::move(layout));
  }

  // Least optimizer state to offload for a fit; nullopt: all of it does not suffice, or the host
  // has no room.
  std::optional<MemoryPrice> with_least_state(LayoutChoice& choice, std::size_t most_state) {
    for (choice.host_state = 0; choice.host_state <= most_state; ++choice.host_state) {
      const MemoryPrice memory = memory_of(choice);
      if (memory.fits()) return memory;
      if (!memory.fits_host()) return std::nullopt;
    }
    return std::nullopt;
  }

  // Offloads of a rung: more offloaded activations need less offloaded optimizer state.
  void add_offloads_of_rung(LayoutChoice choice,
                            const OffloadLimit& limit,
                            std::vector<PricedLayout>& found) {
    const std::vector<std::size_t> offloads = space_.offloads_of(choice.recompute);
    LayoutChoice most = choice;
    most.offload = offloads.back();
    most.host_state = limit.most_state;
    const MemoryPrice least = memory_of(most);
    if (least.total() > least.capacity) return;
    std::size_t state = kStateQuarters + 1;
    for (const std::size_t offload : offloads) {
      choice.offload = offload;
      const std::optional<MemoryPrice> memory = with_least_state(choice, limit.most_state);
      if (!memory || choice.host_state >= state) continue;
      state = choice.host_state;
      PricedLayout layout{.choice = choice, .price = sieved(choice)};
      layout.price.memory = *memory;
      if (layout.price.step_ms <= limit.limit_ms) found.push_back(std::move(layout));
      if (state == 0) return;
    }
  }

  // Offload costs no compute and may beat recomputation: tries rungs below the first that fits
  // without it.
  std::vector<PricedLayout> offloads_of(const Modes& modes, const OffloadLimit& limit) {
    LayoutChoice choice = in_modes(modes);
    const std::vector<Carrier> carriers = space_.carriers_of(shape_);
    choice.carrier = carriers.back();
    std::vector<PricedLayout> found;
    for (; choice.recompute < space_.writer().ladder().size(); ++choice.recompute) {
      if (!space_.order_allows(modes.order, choice.recompute)) continue;
      LayoutChoice offloaded = choice;
      offloaded.offload = 1;
      choice.graphs = space_.graphs_of(offloaded).front();
      if (sieved(choice).step_ms > limit.limit_ms || memory_of(choice).fits()) break;
      add_offloads_of_rung(choice, limit, found);
    }
    std::ranges::sort(found, is_faster);
    if (found.size() > kOffloadsOfOrder) found.resize(kOffloadsOfOrder);
    std::vector<PricedLayout> all = found;
    for (const Carrier carrier : carriers) {
      if (carrier == choice.carrier) continue;
      for (PricedLayout layout : found) {
        layout.choice.carrier = carrier;
        const MemoryPrice memory = layout.price.memory;
        layout.price = sieved(layout.choice);
        layout.price.memory = memory;
        all.push_back(std::move(layout));
      }
    }
    std::ranges::sort(all, is_faster);
    if (all.size() > kOffloadsOfOrder) all.resize(kOffloadsOfOrder);
    return all;
  }

  const LayoutSpace& space_;
  LayoutChoice shape_;
  Config config_;
  ShapeOutcome outcome_;
};

}  // namespace

ShapeOutcome price_shape(const LayoutSpace& space, const LayoutChoice& shape) {
  return ShapePricing(space, shape).price();
}

std::vector<PricedLayout> price_rungs(const LayoutSpace& space, const LayoutChoice& choice) {
  return ShapePricing(space, choice).rungs(choice);
}

double least_step_ms(const LayoutSpace& space, const LayoutChoice& shape) {
  return ShapePricing(space, shape).least_step_ms();
}

std::vector<PricedLayout> price_offloads(const LayoutSpace& space,
                                         const LayoutChoice& shape,
                                         const OffloadLimit& limit) {
  return ShapePricing(space, shape).offloads(limit);
}

PricedLayout smallest_of_shape(const LayoutSpace& space, const LayoutChoice& shape) {
  return ShapePricing(space, shape).smallest();
}

}  // namespace weft::plan
