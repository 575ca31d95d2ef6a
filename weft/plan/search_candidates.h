// Which of the layouts that a formula priced are worth simulating.
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <vector>

#include "weft/plan/search.h"

namespace weft::plan {

// Of each choice once: in the order of time, then of memory, then of the choice.
bool is_faster(const PricedLayout& a, const PricedLayout& b);

// Fastest first; every one is smaller than all before it.
std::vector<PricedLayout> front_of(std::vector<PricedLayout> all);

class SearchCandidates {
 public:
  explicit SearchCandidates(const LayoutSpace& space) : space_(space) {}

  // All layouts of one shape that fit, priced by formula; the fastest among them.
  void add_shape(const std::vector<PricedLayout>& layouts, const PricedLayout& best);

  // The same of those with something on the host, fastest first.
  void add_offloads(const std::vector<PricedLayout>& layouts);

  // Modes of the `shapes` fastest shapes that are near the best of their shape or the best of their
  // order; of the fastest with something on the host; the fastest of every order, of those that
  // recompute whole layers and of those that are safe, in any shape; the front. The fastest of each
  // shape and order with and without graphs, because rules may refuse these.
  std::vector<PricedLayout> take(std::size_t shapes);

 private:
  // The fastest so many.
  struct Fastest {
    std::vector<PricedLayout> kept;
    void add(const PricedLayout& layout);
  };

  void add(const PricedLayout& layout);
  void add_as_is(const PricedLayout& layout);

  const LayoutSpace& space_;
  std::vector<std::vector<PricedLayout>> near_;      // of a shape, the fastest first
  std::vector<std::vector<PricedLayout>> offloads_;  // the same
  std::array<Fastest, kStepOrders> of_order_;
  Fastest full_, safe_;
  std::vector<PricedLayout> fronts_;
  std::set<LayoutChoice> taken_;
  std::set<LayoutChoice> orders_taken_;  // of a shape and an order, without other modes
  std::vector<PricedLayout> all_;
};

}  // namespace weft::plan
