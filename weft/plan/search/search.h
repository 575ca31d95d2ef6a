// Search of the fastest layout. Every possible shape with its modes is checked against GPU memory
// and priced by formula; the best are simulated and ranked.
//
// The search is exhaustive and deterministic, independent of the number of threads. Five things
// keep it short. A shape whose smallest form does not fit is dropped after one look. Only the first
// fitting rung of recomputation is priced in every order and with every dispatcher, since later
// rungs add work; an unsharded optimizer is priced only with the best of these. Offloading is tried
// only if it could make a shape one of the best. Only good layouts by formula are simulated: a
// fixed number of shapes, and the Pareto front of time and memory. Rules judge only shown layouts,
// in the order of the ranking.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/plan/price/price.h"
#include "weft/plan/search/layout_space.h"

namespace weft::plan {

// Relative difference of steps up to which they are ties: the price's resolution. (Published runs
// with one changed knob are met to about 2 %: docs/plan.md.)
inline constexpr double kTie = 0.01;

struct PricedLayout {
  LayoutChoice choice;
  Price price;
  bool is_counted = false;  // its memory is counted by a dry step of a short run; false: by formula
};

// True if it uses no host memory, no CUDA graphs that the search chose, and leaves spare memory.
bool is_safe(const PricedLayout& layout);

// Unranked layouts with a common reason.
struct DiscardedLayouts {
  std::string why;
  std::int64_t layouts = 0;                  // number of shapes
  std::optional<LayoutChoice> nearest = {};  // the one that lacks least, or was fastest
  std::string lack = {};                     // its lack: "3.2 GiB more than there is"
};

struct SearchResult {
  std::int64_t shapes = 0;      // shapes that divisibility allows
  std::int64_t fitting = 0;     // shapes that fit with nothing on the host
  std::int64_t offloading = 0;  // offloading layouts that fit, among those tried
  std::int64_t priced = 0;      // layouts with modes, by formula
  std::int64_t simulated = 0;   // simulated among them
  // Best simulated layout of each shape that every rule allows, best first; of ties the simpler one
  // (layout_ties.h).
  std::vector<PricedLayout> ranked;
  // Pareto front of time and memory by formula; fastest first, legal.
  std::vector<PricedLayout> front;
  // Discarded for memory or by a rule, then by divisibility; largest groups first.
  std::vector<DiscardedLayouts> discarded;
  // Rule violations of the smallest shape, if no shape is possible.
  std::vector<std::string> refusals;
  // Best layout of each order, and with full recomputation, in any shape. nullopt: rules refuse it.
  std::array<std::optional<PricedLayout>, kStepOrders> best_of_order;
  std::optional<PricedLayout> best_full;
  // Best with nothing on the host, and best with offloading.
  std::optional<PricedLayout> best_resident, best_offloading;
  // Best safe layout among the simulated ones; nullopt: none.
  std::optional<PricedLayout> best_safe;
  // Layout that lacks least memory, if nothing fits.
  std::optional<PricedLayout> nearest;
};

// Observer of a search: progress (called from any thread, one call at a time), and a stop flag.
// Both are optional.
struct SearchWatch {
  std::function<void(std::string_view what, std::int64_t done, std::int64_t all)> show = {};
  const std::atomic<bool>* stop = nullptr;
};

// Thrown by a search that was told to stop.
struct SearchStopped {};

// `top`: least number of best layouts. Runs on `threads` threads. Throws SearchStopped.
SearchResult search_layouts(const LayoutSpace& space,
                            std::size_t top,
                            int threads,
                            const SearchWatch& watch);

// First rule that refuses a layout, with its text; empty: legal.
std::string refusal_of(const LayoutSpace& space, const LayoutChoice& choice);

// Component of a layout's memory under its user name, without the GPU's reserve.
struct MemoryComponent {
  std::string_view name;
  double bytes = 0;
};
std::vector<MemoryComponent> memory_components(const MemoryPrice& memory);
MemoryComponent largest_component(const MemoryPrice& memory);
// "3.2 GiB more than there is, of which activations 40.1 GiB": text for a layout that does not fit.
std::string lack_text(const MemoryPrice& memory);

}  // namespace weft::plan
