// Which stretch of a token stream a global sample index names. The stream of T tokens holds
// N = (T - 1) / seq_length samples; sample i is tokens [i * seq_length, (i + 1) * seq_length], the
// last of which is the first of the next. The last eval_fraction of them are held out.
#pragma once

#include <cstdint>
#include <string>

#include "weft/data/dataset.h"

namespace weft::data {

class SampleOrder {
 public:
  // `name` is the source, for errors. ConfigError where a split gets no sample.
  SampleOrder(const std::string& name,
              std::uint64_t tokens,
              std::int64_t seq_length,
              double eval_fraction,
              std::uint64_t seed);

  std::uint64_t samples(Split split) const { return split == Split::Train ? train_ : eval_; }

  std::uint64_t tokens() const { return tokens_; }

  // First token of global sample `sample`.
  std::uint64_t first_token(Split split, std::uint64_t sample) const;

  std::uint64_t seq_length() const { return seq_length_; }

 private:
  std::string name_;
  std::uint64_t tokens_;
  std::uint64_t seq_length_;
  std::uint64_t seed_;
  std::uint64_t train_ = 0;
  std::uint64_t eval_ = 0;
};

}  // namespace weft::data
