// Megatron's split of a data set in three, "969,30,1": consecutive stretches of its sequences for
// training, validation and test, in these proportions.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft::data {

using SplitShares = std::array<double, 3>;  // they add up to 1

// One to three numbers with commas between them; those left out are 0. ConfigError where one is
// negative or no number, or all are 0.
SplitShares parse_split(const std::string& text);

struct SequenceRange {
  std::uint64_t begin = 0, end = 0;
  bool operator==(const SequenceRange&) const = default;
};

// The sequences of each share: sums of shares times the number of sequences, rounded to the
// nearest, halves to the even one.
std::array<SequenceRange, 3> split_ranges(const SplitShares& shares, std::uint64_t sequences);

}  // namespace weft::data
