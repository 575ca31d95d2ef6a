#include "weft/grid/grid.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::grid {
namespace {

enum class Side { Dense, Expert };
enum class Stages { All, Ends, First };

// Composition of a group: axes of one view, and the pipeline stages that take part.
struct Membership {
  GroupKind kind;
  std::string_view word;
  Side side;
  Axes axes;
  Stages stages = Stages::All;
};

constexpr std::array<Membership, kGroupKinds.size()> kMemberships{{
    {GroupKind::Tp, "tp", Side::Dense, {Axis::Tp}},
    {GroupKind::Cp, "cp", Side::Dense, {Axis::Cp}},
    {GroupKind::Dp, "dp", Side::Dense, {Axis::Dp}},
    {GroupKind::DpCp, "dp_cp", Side::Dense, {Axis::Dp, Axis::Cp}},
    {GroupKind::Pp, "pp", Side::Dense, {Axis::Pp}},
    {GroupKind::Mp, "mp", Side::Dense, {Axis::Tp, Axis::Pp}},
    {GroupKind::Embedding, "embedding", Side::Dense, {Axis::Pp}, Stages::Ends},
    {GroupKind::PositionEmbedding, "position_embedding", Side::Dense, {Axis::Pp}, Stages::First},
    {GroupKind::TpDpCp, "tp_dp_cp", Side::Dense, {Axis::Tp, Axis::Dp, Axis::Cp}},
    {GroupKind::TpDp, "tp_dp", Side::Dense, {Axis::Tp, Axis::Dp}},
    {GroupKind::TpCp, "tp_cp", Side::Dense, {Axis::Tp, Axis::Cp}},
    {GroupKind::Ep, "ep", Side::Expert, {Axis::Ep}},
    {GroupKind::ExpertTp, "expert_tp", Side::Expert, {Axis::Tp}},
    {GroupKind::TpEp, "tp_ep", Side::Expert, {Axis::Tp, Axis::Ep}},
    {GroupKind::TpEpPp, "tp_ep_pp", Side::Expert, {Axis::Tp, Axis::Ep, Axis::Pp}},
    {GroupKind::ExpertDp, "expert_dp", Side::Expert, {Axis::Dp}},
    {GroupKind::World, "world", Side::Dense, {Axis::Tp, Axis::Cp, Axis::Ep, Axis::Dp, Axis::Pp}},
}};

const Membership& membership_of(GroupKind kind) {
  const Membership& membership = kMemberships[static_cast<std::size_t>(kind)];
  CHECK(membership.kind == kind, "group table out of order at '{}'", membership.word);
  return membership;
}

// Keeps the members of a pipeline that take part, in place.
void keep_stages(std::vector<int>& pipeline, Stages stages) {
  switch (stages) {
    case Stages::All:
      return;
    case Stages::Ends:
      if (pipeline.size() > 2) pipeline = {pipeline.front(), pipeline.back()};
      return;
    case Stages::First:
      pipeline.resize(1);
      return;
  }
}

const Layout& legal(const Layout& layout) {
  std::vector<std::string> complaints = layout_complaints(layout);
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return layout;
}

int narrow(std::int64_t size) { return static_cast<int>(size); }

View dense_view(const Layout& l) {
  const std::int64_t dp = l.world / (l.tp * l.cp * l.pp);
  return View({narrow(l.tp), narrow(l.cp), 1, narrow(dp), narrow(l.pp)}, *parse_order(l.order));
}

View expert_view(const Layout& l) {
  const std::int64_t edp = l.world / (l.etp * l.ep * l.pp);
  return View({narrow(l.etp), 1, narrow(l.ep), narrow(edp), narrow(l.pp)}, *parse_order(l.order));
}

}  // namespace

std::string_view word(GroupKind kind) { return membership_of(kind).word; }

std::optional<GroupKind> group_kind(std::string_view word) {
  for (const Membership& membership : kMemberships) {
    if (membership.word == word) return membership.kind;
  }
  return std::nullopt;
}

Grid::Grid(const Layout& layout)
    : layout_(legal(layout)), dense_(dense_view(layout_)), expert_(expert_view(layout_)) {}

Coordinate Grid::coordinate(int rank) const {
  CHECK(rank >= 0 && rank < world(), "rank {} of {}", rank, world());
  return {.tp = dense_.coordinate(rank, Axis::Tp),
          .cp = dense_.coordinate(rank, Axis::Cp),
          .dp = dense_.coordinate(rank, Axis::Dp),
          .pp = dense_.coordinate(rank, Axis::Pp),
          .etp = expert_.coordinate(rank, Axis::Tp),
          .ep = expert_.coordinate(rank, Axis::Ep),
          .edp = expert_.coordinate(rank, Axis::Dp)};
}

std::vector<std::vector<int>> Grid::groups(GroupKind kind) const {
  const Membership& membership = membership_of(kind);
  const View& view = membership.side == Side::Dense ? dense_ : expert_;
  std::vector<std::vector<int>> all = view.groups(membership.axes);
  for (std::vector<int>& group : all) keep_stages(group, membership.stages);
  return all;
}

std::vector<int> Grid::group_of(GroupKind kind, int rank) const {
  CHECK(rank >= 0 && rank < world(), "rank {} of {}", rank, world());
  const Membership& membership = membership_of(kind);
  const View& view = membership.side == Side::Dense ? dense_ : expert_;
  std::vector<int> group = view.group_of(membership.axes, rank);
  keep_stages(group, membership.stages);
  if (std::find(group.begin(), group.end(), rank) == group.end()) return {};
  return group;
}

}  // namespace weft::grid
