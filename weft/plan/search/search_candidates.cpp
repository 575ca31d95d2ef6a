#include "weft/plan/search/search_candidates.h"

#include <algorithm>
#include <iterator>

namespace weft::plan {
namespace {

// Bound of the formula's error against the simulated price (docs/plan.md).
constexpr double kNear = 1.15;
// The fastest kThorough shapes are simulated in all modes within kNear; later shapes, which need a
// larger gain, in modes within kNearer.
constexpr std::size_t kThorough = 24;
constexpr double kNearer = 1.05;
constexpr std::size_t kOfEach = 12;      // orders, and full recomputation
constexpr std::size_t kOffloading = 12;  // shapes

// Formulas include a layout's graphs; each is simulated without them too.
bool is_safe_without_graphs(PricedLayout layout) {
  layout.choice.graphs = Graphs::None;
  layout.price.memory.graphs = 0;
  return is_safe(layout);
}

// True if two layouts differ only in their flex dispatcher and cost the same.
bool differ_only_in_dispatcher(const PricedLayout& one, const PricedLayout& other) {
  LayoutChoice same = other.choice;
  same.carrier = one.choice.carrier;
  return same == one.choice && one.choice.carrier != Carrier::AllToAll &&
         other.choice.carrier != Carrier::AllToAll && one.price.step_ms == other.price.step_ms &&
         one.price.memory.total() == other.price.memory.total();
}

// Keeps the first of twins in a sorted list. Twins of the fastest stay: a rule may refuse one.
void drop_twins(std::vector<PricedLayout>& sorted) {
  std::vector<PricedLayout> kept;
  for (PricedLayout& layout : sorted) {
    const bool is_twin = std::ranges::any_of(kept, [&](const PricedLayout& other) {
      return differ_only_in_dispatcher(other, layout) &&
             !differ_only_in_dispatcher(kept.front(), layout);
    });
    if (!is_twin) kept.push_back(std::move(layout));
  }
  sorted = std::move(kept);
}

}  // namespace

bool is_faster(const PricedLayout& a, const PricedLayout& b) {
  if (a.price.step_ms != b.price.step_ms) return a.price.step_ms < b.price.step_ms;
  if (a.price.memory.total() != b.price.memory.total()) {
    return a.price.memory.total() < b.price.memory.total();
  }
  return a.choice < b.choice;
}

std::vector<PricedLayout> front_of(std::vector<PricedLayout> all) {
  std::ranges::sort(all, is_faster);
  std::vector<PricedLayout> front;
  for (const PricedLayout& layout : all) {
    const double least = front.empty() ? 0 : front.back().price.memory.total();
    if (front.empty() || layout.price.memory.total() < least) front.push_back(layout);
  }
  return front;
}

void SearchCandidates::Fastest::add(const PricedLayout& layout) {
  kept.push_back(layout);
  std::ranges::push_heap(kept, is_faster);
  if (kept.size() <= kOfEach) return;
  std::ranges::pop_heap(kept, is_faster);
  kept.pop_back();
}

void SearchCandidates::add_shape(const std::vector<PricedLayout>& layouts,
                                 const PricedLayout& best) {
  std::array<const PricedLayout*, kStepOrders> first{};
  std::vector<PricedLayout> near{best};
  for (const PricedLayout& layout : layouts) {
    const auto order = static_cast<std::size_t>(layout.choice.order);
    if (!first[order] || is_faster(layout, *first[order])) first[order] = &layout;
    of_order_[order].add(layout);
    if (space_.writer().ladder().at(layout.choice.recompute).is_full) full_.add(layout);
    if (is_safe_without_graphs(layout)) safe_.add(layout);
    if (layout.price.step_ms <= kNear * best.price.step_ms) near.push_back(layout);
  }
  for (const PricedLayout* layout : first) {
    if (layout) near.push_back(*layout);
  }
  std::ranges::sort(near, is_faster);
  drop_twins(near);
  near_.push_back(std::move(near));
  std::ranges::move(front_of(layouts), std::back_inserter(fronts_));
}

void SearchCandidates::add_offloads(const std::vector<PricedLayout>& layouts) {
  offloads_.push_back(layouts);
  std::ranges::move(front_of(layouts), std::back_inserter(fronts_));
}

void SearchCandidates::add_as_is(const PricedLayout& layout) {
  if (taken_.insert(layout.choice).second) all_.push_back(layout);
}

void SearchCandidates::add(const PricedLayout& layout) {
  add_as_is(layout);
  const LayoutChoice& choice = layout.choice;
  LayoutChoice order = choice;
  order.carrier = Carrier::Given;
  order.state = StateHolder::Shared;
  order.recompute = order.offload = order.host_state = 0;
  order.graphs = Graphs::Given;
  if (!orders_taken_.insert(order).second) return;
  for (const Graphs each : space_.graphs_of(choice)) {
    PricedLayout other = layout;
    other.choice.graphs = each;
    add_as_is(other);
  }
}

std::vector<PricedLayout> SearchCandidates::take(std::size_t shapes) {
  const auto first = [](const auto& near) -> const PricedLayout& { return near.front(); };
  std::ranges::sort(near_, is_faster, first);
  std::ranges::sort(offloads_, is_faster, first);
  for (std::size_t i = 0; i < std::min(shapes, near_.size()); ++i) {
    const double most = kNearer * near_[i].front().price.step_ms;
    for (const PricedLayout& layout : near_[i]) {
      if (i < kThorough || layout.price.step_ms <= most) add(layout);
    }
  }
  for (std::size_t i = 0; i < std::min(kOffloading, offloads_.size()); ++i) {
    for (const PricedLayout& layout : offloads_[i]) add(layout);
  }
  for (const Fastest& fastest : of_order_) {
    for (const PricedLayout& layout : fastest.kept) add(layout);
  }
  for (const PricedLayout& layout : full_.kept) add(layout);
  for (PricedLayout layout : safe_.kept) {
    const std::vector<Graphs> graphs = space_.graphs_of(layout.choice);
    if (std::ranges::find(graphs, Graphs::None) != graphs.end()) {
      layout.choice.graphs = Graphs::None;
    }
    add_as_is(layout);
  }
  for (const PricedLayout& layout : front_of(std::move(fronts_))) add(layout);
  return std::move(all_);
}

}  // namespace weft::plan
