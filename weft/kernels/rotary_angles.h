// How channels turn: by which angles, and which of them together.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::kernels {

struct Yarn {
  double factor = 1;              // how far positions are stretched
  double original_positions = 1;  // what the model was trained for before
  double beta_fast = 32;          // pairs that turn more often than this over them keep their angle
  double beta_slow = 1;           // those that turn less often are stretched; between, a ramp
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
