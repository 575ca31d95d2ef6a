// One view of the ranks: a mixed-radix number whose digits are coordinates along named axes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

namespace weft::grid {

enum class Axis { Tp, Cp, Ep, Dp, Pp };
inline constexpr std::size_t kAxisCount = 5;

// A set of axes.
class Axes {
 public:
  constexpr Axes(std::initializer_list<Axis> axes) {
    for (const Axis axis : axes) bits_ |= bit(axis);
  }
  constexpr bool contains(Axis axis) const { return (bits_ & bit(axis)) != 0; }

 private:
  static constexpr std::uint32_t bit(Axis axis) { return 1u << static_cast<unsigned>(axis); }
  std::uint32_t bits_ = 0;
};

using AxisOrder = std::array<Axis, kAxisCount>;

// "tp-cp-ep-dp-pp" as axes, fastest first; nullopt unless every axis is named exactly once.
std::optional<AxisOrder> parse_order(std::string_view order);

class View {
 public:
  // `sizes` by axis (indexed by Axis), `order` fastest first. Every size is at least 1.
  View(const std::array<int, kAxisCount>& sizes, const AxisOrder& order);

  int size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  int stride(Axis axis) const { return strides_[static_cast<std::size_t>(axis)]; }
  int coordinate(int rank, Axis axis) const { return rank / stride(axis) % size(axis); }

  // Ranks that differ only along `axes`, fastest axis first; groups likewise, fastest first along
  // the other axes.
  std::vector<std::vector<int>> groups(Axes axes) const;
  std::vector<int> group_of(Axes axes, int rank) const;

 private:
  enum class Along { Named, Others };
  std::vector<int> offsets(Axes axes, Along along) const;

  std::array<int, kAxisCount> sizes_;
  std::array<int, kAxisCount> strides_;
  AxisOrder order_;
};

}  // namespace weft::grid
