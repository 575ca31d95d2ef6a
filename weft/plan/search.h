// WHICH LAYOUT IS FASTEST? Every shape that could be, with the modes it could have, is held against
// the memory of the GPU and priced by formula; the schedules of the best are simulated, and those
// are ranked.
//
// Nothing is sampled and nothing is random: two searches of one question give the same answer,
// whatever the number of threads. Five things keep it short. A shape that does not fit when it
// keeps as little as it can is left out after one look. Of the rungs of recomputation only the
// first that fits is priced in every order and with every carrier: those after it do the same work
// and more; an optimizer that is whole on each rank is priced with the best of these alone. What
// the host may hold is tried where it could make a shape one of the best. Only what the formula
// finds good is simulated: a fixed number of shapes, and the front of time against
// memory. And rules judge what is shown, in the order of the ranking.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/plan/layout_space.h"
#include "weft/plan/price.h"

namespace weft::plan {

// Steps that differ by no more than this share are ties: a price does not tell them apart. (Runs
// that were measured twice with one knob changed are met to about 2 %: docs/plan.md.)
inline constexpr double kTie = 0.01;

struct PricedLayout {
  LayoutChoice choice;
  Price price;
  bool is_counted = false;  // its memory, by a dry step of a short run; else it is the formula's
};

// Nothing on the host, no CUDA graphs that the search chose, and memory to spare.
bool is_safe(const PricedLayout& layout);

// Layouts that are not among those ranked, for one reason.
struct DiscardedLayouts {
  std::string why;
  std::int64_t layouts = 0;                  // shapes
  std::optional<LayoutChoice> nearest = {};  // the one that lacks least, or was fastest
  std::string lack = {};                     // of it: "3.2 GiB more than there is"
};

struct SearchResult {
  std::int64_t shapes = 0;      // that divisions allow
  std::int64_t fitting = 0;     // with nothing on the host
  std::int64_t offloading = 0;  // of those tried with something on the host, those that fit
  std::int64_t priced = 0;      // layouts, with their modes, by formula
  std::int64_t simulated = 0;   // of them
  // Of those simulated the best of each shape that every rule allows, best first; of ties the
  // simpler one (layout_ties.h).
  std::vector<PricedLayout> ranked;
  // Every layout than which no other is both faster and smaller, by formula; fastest first, legal.
  std::vector<PricedLayout> front;
  // What does not fit or is refused by a rule, then what does not divide; most layouts first.
  std::vector<DiscardedLayouts> discarded;
  // Where no shape is possible: what rules say of the smallest.
  std::vector<std::string> refusals;
  // The best of each order, and of those that recompute whole layers, in any shape; where a rule
  // refuses it, none.
  std::array<std::optional<PricedLayout>, kStepOrders> best_of_order;
  std::optional<PricedLayout> best_full;
  // The best with nothing on the host, and with something there.
  std::optional<PricedLayout> best_resident, best_offloading;
  // The best of those simulated that is safe; nullopt: none is.
  std::optional<PricedLayout> best_safe;
  // Where nothing fits: the layout that lacks least.
  std::optional<PricedLayout> nearest;
};

// Who looks on: how far a search is (called from any thread, one call at a time), and whether it
// should end. Either may be missing.
struct SearchWatch {
  std::function<void(std::string_view what, std::int64_t done, std::int64_t all)> show = {};
  const std::atomic<bool>* stop = nullptr;
};

// A search that was told to end.
struct SearchStopped {};

// `top`: how many of the best are wanted at least. On `threads` threads. Throws SearchStopped.
SearchResult search_layouts(const LayoutSpace& space,
                            std::size_t top,
                            int threads,
                            const SearchWatch& watch);

// The first rule that refuses a layout, with its words; empty: it is legal.
std::string refusal_of(const LayoutSpace& space, const LayoutChoice& choice);

// What a layout's memory is made of, as a person calls it; what the GPU reserves is not in it.
struct MemoryComponent {
  std::string_view name;
  double bytes = 0;
};
std::vector<MemoryComponent> memory_components(const MemoryPrice& memory);
MemoryComponent largest_component(const MemoryPrice& memory);
// "3.2 GiB more than there is, of which activations 40.1 GiB": of a layout that does not fit.
std::string lack_text(const MemoryPrice& memory);

}  // namespace weft::plan
