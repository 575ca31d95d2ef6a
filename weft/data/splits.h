// Megatron's data split, "969,30,1": consecutive stretches of the sequences for training,
// validation and test, in these proportions.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::data {

using SplitShares = std::array<double, 3>;  // sum: 1

// Parses one to three numbers separated by commas; missing ones are 0. Throws ConfigError if one is
// negative or no number, or all are 0.
SplitShares parse_split(const std::string& text);

struct SequenceRange {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const SequenceRange&) const = default;
};

// Sequences of each share: cumulated shares times the number of sequences, rounded to nearest, ties
// to even.
std::array<SequenceRange, 3> split_ranges(const SplitShares& shares, std::uint64_t sequences);

}  // namespace weft::data
