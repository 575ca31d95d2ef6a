// Options of the rotary embedding: angles, and which channels turn together.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::kernels {

struct Yarn {
  double factor = 1;              // stretch of the positions
  double original_positions = 1;  // positions before stretching
  double beta_fast = 32;  // pairs with more turns than this over those positions keep their angle
  double beta_slow = 1;   // pairs with fewer are stretched; between the two, a ramp
  double magnitude = 1;
};
struct RotaryAngles {
  double base = 10000;  // pair i turns by position * base^(-2i/d)
  std::optional<Yarn> yarn;
};

struct Rotary {
  enum class Pairs { Halves, Neighbours };  // (i, i + d/2), or (2i, 2i + 1)
  Pairs pairs = Pairs::Halves;
  std::int64_t unturned = 0;  // channels of a head before the d that turn
};

}  // namespace weft::kernels
