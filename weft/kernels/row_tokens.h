// Token of the step that a row holds; random numbers are functions of it.
#pragma once

#include <cstdint>

namespace weft::kernels {

// The rows of a sequence of `length` tokens are two runs of `run` tokens that begin at `begins`. A
// run of the whole sequence is the only one.
struct RowTokens {
  std::int64_t first = 0;      // first token of the first sequence
  std::int64_t first_row = 0;  // number of the first row among the rows of all sequences
  std::int64_t length = 1, run = 1;
  std::int64_t begins[2] = {0, 0};

  constexpr std::int64_t of_row(std::int64_t row) const {
    const std::int64_t all = row + first_row, rows = run == length ? run : 2 * run;
    const std::int64_t i = all % rows, half = i / run;
    return first + all / rows * length + begins[half] + i - half * run;
  }
};

}  // namespace weft::kernels
