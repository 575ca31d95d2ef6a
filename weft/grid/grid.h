// WHO AM I? Two views of the same ranks. The dense view (tp, cp, dp, pp) places attention and dense
// weights; the expert view (etp, ep, edp, pp) places experts. The views share only the pipelines,
// so an ep group may span tp, cp and dp ranks.
#pragma once

#include <vector>

#include "weft/grid/group_kind.h"
#include "weft/grid/layout.h"
#include "weft/grid/view.h"

namespace weft::grid {

// Coordinates of a rank in both views.
struct Coordinate {
  int tp = 0, cp = 0, dp = 0, pp = 0;
  int etp = 0, ep = 0, edp = 0;
  bool operator==(const Coordinate&) const = default;
};

class Grid {
 public:
  // Throws ConfigError with every complaint if the layout is illegal.
  explicit Grid(const Layout& layout);

  const Layout& layout() const { return layout_; }
  int world() const { return static_cast<int>(layout_.world); }
  int tp() const { return dense_.size(Axis::Tp); }
  int cp() const { return dense_.size(Axis::Cp); }
  int dp() const { return dense_.size(Axis::Dp); }
  int pp() const { return dense_.size(Axis::Pp); }
  int etp() const { return expert_.size(Axis::Tp); }
  int ep() const { return expert_.size(Axis::Ep); }
  int edp() const { return expert_.size(Axis::Dp); }

  Coordinate coordinate(int rank) const;

  // All groups of a kind; ranks and groups are ordered fastest axis first.
  std::vector<std::vector<int>> groups(GroupKind kind) const;

  // Group of a kind that contains `rank`; empty: none, such as a middle pipeline stage and the
  // embedding group.
  std::vector<int> group_of(GroupKind kind, int rank) const;

 private:
  Layout layout_;
  View dense_;
  View expert_;
};

}  // namespace weft::grid
