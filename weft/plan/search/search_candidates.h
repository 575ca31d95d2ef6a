// Selection of layouts priced by formula that are worth a simulation.
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <vector>

#include "weft/plan/search/search.h"

namespace weft::plan {

// Total order by time, then memory, then choice.
bool is_faster(const PricedLayout& a, const PricedLayout& b);

// Pareto front: fastest first, each smaller than all before it.
std::vector<PricedLayout> front_of(std::vector<PricedLayout> all);

class SearchCandidates {
 public:
  explicit SearchCandidates(const LayoutSpace& space) : space_(space) {}

  // Adds all fitting layouts of one shape, priced by formula, and the fastest of them.
  void add_shape(const std::vector<PricedLayout>& layouts, const PricedLayout& best);

  // Adds offloading layouts, fastest first.
  void add_offloads(const std::vector<PricedLayout>& layouts);

  // Selects modes near the best of their shape or order, for the `shapes` fastest shapes; the
  // fastest offloading layouts; the fastest of every order, with full recomputation, and safe ones,
  // in any shape; and the front. Includes the fastest of each shape and order with and without
  // graphs, since rules may refuse graphs.
  std::vector<PricedLayout> take(std::size_t shapes);

 private:
  // Bounded list of the fastest layouts.
  struct Fastest {
    std::vector<PricedLayout> kept;
    void add(const PricedLayout& layout);
  };

  void add(const PricedLayout& layout);
  void add_as_is(const PricedLayout& layout);

  const LayoutSpace& space_;
  std::vector<std::vector<PricedLayout>> near_;      // by shape, fastest first
  std::vector<std::vector<PricedLayout>> offloads_;  // by shape, fastest first
  std::array<Fastest, kStepOrders> of_order_;
  Fastest full_, safe_;
  std::vector<PricedLayout> fronts_;
  std::set<LayoutChoice> taken_;
  std::set<LayoutChoice> orders_taken_;  // shape and order, without other modes
  std::vector<PricedLayout> all_;
};

}  // namespace weft::plan
