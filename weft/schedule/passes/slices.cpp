#include "weft/schedule/passes/slices.h"

#include <array>

#include "weft/base/check.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// What a slice does, one after the other: it travels to its experts, is with them, travels back,
// and is put in its place.
enum class Stage { There, Experts, Back, Place };
constexpr std::size_t kStages = 4;

Stage stage_of(const Node& node) {
  const bool forward = node.direction == Direction::F;
  switch (node.piece) {
    case Piece::Permute:
      return forward ? Stage::There : Stage::Place;
    case Piece::Sizes:
      return Stage::There;
    case Piece::Dispatch:
      return forward ? Stage::There : Stage::Back;
    case Piece::Experts:
      return Stage::Experts;
    case Piece::Combine:
      return forward ? Stage::Back : Stage::There;
    default:
      UNREACHABLE("{} stands between slices", print(node));
  }
}

// The slices of one layer and micro-batch, one way.
class Slices {
 public:
  void add(Step step) {
    const std::size_t slice =
        step.node.slice == kNone ? 0 : static_cast<std::size_t>(step.node.slice);
    if (slice >= slices_.size()) slices_.resize(slice + 1);
    slices_[slice][static_cast<std::size_t>(stage_of(step.node))].push_back(std::move(step));
  }

  // Each slice sets out before the one ahead of it is with its experts, and is put in its place
  // after the one behind it was.
  void stagger(Steps& order) {
    const std::size_t count = slices_.size();
    if (count > 0) move(0, Stage::There, order);
    for (std::size_t i = 0; i < count; ++i) {
      if (i + 1 < count) move(i + 1, Stage::There, order);
      move(i, Stage::Experts, order);
      move(i, Stage::Back, order);
      if (i > 0) move(i - 1, Stage::Place, order);
    }
    if (count > 0) move(count - 1, Stage::Place, order);
    slices_.clear();
  }

 private:
  void move(std::size_t slice, Stage stage, Steps& order) {
    for (Step& step : slices_[slice][static_cast<std::size_t>(stage)]) {
      order.push_back(std::move(step));
    }
  }

  std::vector<std::array<Steps, kStages>> slices_;
};

}  // namespace

Graph stagger_slices(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  Slices slices;
  Steps order;
  for (Step& step : steps_of(graph)) {
    // The host learns the sizes between the nodes of the first slice.
    const bool inside = step.node.slice != kNone || step.node.piece == Piece::Sizes;
    if (inside) {
      slices.add(std::move(step));
    } else {
      slices.stagger(order);
      order.push_back(std::move(step));
    }
  }
  slices.stagger(order);
  return write(order, anatomy, micro_batches);
}

}  // namespace weft::schedule
