// Which token of a step a row is: what random numbers are functions of.
#pragma once

#include <cstdint>

namespace weft::kernels {

// Of every sequence of `length` tokens the rows are two runs of `run` tokens, which begin at
// `begins`; a run of the whole sequence is the only one.
struct RowTokens {
  std::int64_t first = 0;      // token of the first sequence's begin
  std::int64_t first_row = 0;  // number of the first row among those of all the sequences
  std::int64_t length = 1, run = 1;
  std::int64_t begins[2] = {0, 0};

  constexpr std::int64_t of_row(std::int64_t row) const {
    const std::int64_t all = row + first_row, rows = run == length ? run : 2 * run;
    const std::int64_t i = all % rows, half = i / run;
    return first + all / rows * length + begins[half] + i - half * run;
  }
};

}  // namespace weft::kernels
