#include "weft/grid/view.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weft/base/text.h"

namespace weft::grid {
namespace {

constexpr std::array<std::string_view, kAxisCount> kAxisWords{"tp", "cp", "ep", "dp", "pp"};

}  // namespace

std::optional<AxisOrder> parse_order(std::string_view order) {
  const std::vector<std::string> words = base::split(order.substr(0, 32), '-');
  if (order.size() > 32 || words.size() != kAxisCount) return std::nullopt;
  AxisOrder axes{};
  std::array<bool, kAxisCount> seen{};
  for (std::size_t i = 0; i < kAxisCount; ++i) {
    const auto at = std::find(kAxisWords.begin(), kAxisWords.end(), words[i]);
    if (at == kAxisWords.end()) return std::nullopt;
    const auto axis = static_cast<std::size_t>(at - kAxisWords.begin());
    if (std::exchange(seen[axis], true)) return std::nullopt;
    axes[i] = static_cast<Axis>(axis);
  }
  return axes;
}

View::View(const std::array<int, kAxisCount>& sizes, const AxisOrder& order)
    : sizes_(sizes), strides_{}, order_(order) {
  int stride = 1;
  for (const Axis axis : order_) {
    strides_[static_cast<std::size_t>(axis)] = stride;
    stride *= size(axis);
  }
}

std::vector<int> View::offsets(Axes axes, Along along) const {
  std::vector<int> all{0};
  for (const Axis axis : order_) {
    if (axes.contains(axis) != (along == Along::Named)) continue;
    const std::size_t faster = all.size();
    all.reserve(faster * static_cast<std::size_t>(size(axis)));
    for (int i = 1; i < size(axis); ++i) {
      for (std::size_t j = 0; j < faster; ++j) all.push_back(all[j] + i * stride(axis));
    }
  }
  return all;
}

std::vector<std::vector<int>> View::groups(Axes axes) const {
  const std::vector<int> members = offsets(axes, Along::Named);
  const std::vector<int> starts = offsets(axes, Along::Others);
  std::vector<std::vector<int>> all;
  all.reserve(starts.size());
  for (const int start : starts) {
    std::vector<int>& group = all.emplace_back(members);
    for (int& rank : group) rank += start;
  }
  return all;
}

std::vector<int> View::group_of(Axes axes, int rank) const {
  int start = rank;
  for (const Axis axis : order_) {
    if (axes.contains(axis)) start -= coordinate(rank, axis) * stride(axis);
  }
  std::vector<int> group = offsets(axes, Along::Named);
  for (int& member : group) member += start;
  return group;
}

}  // namespace weft::grid
