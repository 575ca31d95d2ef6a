// Which stretch of a token stream a global sample index names. A split is a stretch of the stream;
// of T tokens it holds N = (T - 1) / seq_length samples; sample i is its tokens
// [i * seq_length, (i + 1) * seq_length], the last of which is the first of the next.
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
  // The last eval_fraction of the samples are held out, and there is no test. `name` is the source,
  // for errors. ConfigError where training or, with a fraction above 0, evaluation gets no sample.
  SampleOrder(const std::string& name,
              std::uint64_t tokens,
              std::int64_t seq_length,
              double eval_fraction,
              std::uint64_t seed);

  // Of each split its tokens, out of `tokens`. ConfigError where training gets no sample.
  SampleOrder(const std::string& name,
              std::uint64_t tokens,
              const std::array<TokenRange, kSplits>& splits,
              std::int64_t seq_length,
              std::uint64_t seed);

  std::uint64_t samples(Split split) const { return part(split).samples; }

  std::uint64_t tokens() const { return tokens_; }

  // First token of global sample `sample`. ConfigError where the split has no sample.
  std::uint64_t first_token(Split split, std::uint64_t sample) const;

  std::uint64_t seq_length() const { return seq_length_; }

 private:
  struct Part {
    std::uint64_t first = 0, samples = 0;  // its first token
  };
  const Part& part(Split split) const { return parts_[static_cast<std::size_t>(split)]; }

  std::string name_;
  std::uint64_t tokens_;
  std::uint64_t seq_length_;
  std::uint64_t seed_;
  std::array<Part, kSplits> parts_;
};

}  // namespace weft::data
