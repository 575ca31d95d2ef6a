// View of the ranks: a rank is a mixed-radix number whose digits are coordinates along named axes.
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

// Parses "tp-cp-ep-dp-pp", fastest axis first; nullopt: some axis is missing or repeated.
std::optional<AxisOrder> parse_order(std::string_view order);

class View {
 public:
  // `sizes` is indexed by Axis; every size is at least 1. `order`: fastest axis first.
  View(const std::array<int, kAxisCount>& sizes, const AxisOrder& order);

  int size(Axis axis) const { return sizes_[static_cast<std::size_t>(axis)]; }
  int stride(Axis axis) const { return strides_[static_cast<std::size_t>(axis)]; }
  int coordinate(int rank, Axis axis) const { return rank / stride(axis) % size(axis); }

  // Groups of ranks that differ only along `axes`, fastest axis first. Groups are ordered along the
  // other axes, fastest first.
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
