// Steps that take as much memory as a dry step: all ranks choose all experts equally often.
#pragma once

#include <array>
#include <iosfwd>

#include "weft/tensor/pool.h"
#include "weft/train/engine.h"

namespace weft::train {

struct Peaks {
  std::array<std::size_t, tensor::kTags> tags{};
  std::size_t total = 0;
  bool operator==(const Peaks&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Peaks& peaks);

Peaks peaks_of(const tensor::Pool& pool);

// Runs training steps and an evaluation.
void run_even_steps(Engine& engine, std::int64_t steps);

}  // namespace weft::train
