// Maps a global sample index to its stretch of a token stream. A split is a stretch of T tokens and
// holds N = (T - 1) / seq_length samples. Sample i is tokens [i * seq_length, (i + 1) *
// seq_length]; the last one is the first of the next sample.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "weft/data/dataset.h"

namespace weft::data {

struct TokenRange {
  std::uint64_t begin = 0, end = 0;
};

class SampleOrder {
 public:
  // Holds out the last eval_fraction of the samples; no test split. `name`: source, for errors.
  // Throws ConfigError if training is empty, or if evaluation is empty although the fraction is
  // above 0.
  SampleOrder(const std::string& name,
              std::uint64_t tokens,
              std::int64_t seq_length,
              double eval_fraction,
              std::uint64_t seed);

  // Explicit token ranges per split, within `tokens`. Throws ConfigError if training is empty.
  SampleOrder(const std::string& name,
              std::uint64_t tokens,
              const std::array<TokenRange, kSplits>& splits,
              std::int64_t seq_length,
              std::uint64_t seed);

  std::uint64_t samples(Split split) const { return part(split).samples; }

  std::uint64_t tokens() const { return tokens_; }

  // First token of global sample `sample`. Throws ConfigError if the split is empty.
  std::uint64_t first_token(Split split, std::uint64_t sample) const;

  std::uint64_t seq_length() const { return seq_length_; }

 private:
  struct Part {
    std::uint64_t first = 0, samples = 0;  // first: token index
  };
  const Part& part(Split split) const { return parts_[static_cast<std::size_t>(split)]; }

  std::string name_;
  std::uint64_t tokens_;
  std::uint64_t seq_length_;
  std::uint64_t seed_;
  std::array<Part, kSplits> parts_;
};

}  // namespace weft::data
