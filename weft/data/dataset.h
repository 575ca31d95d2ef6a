// WHAT IS READ? Sources of token samples. What a sample holds depends on (seed, split, index) and
// the data, never on the layout or on who asks first, so that every layout trains on the same
// tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "weft/config/config.h"

namespace weft::data {

enum class Split { Train, Eval };

class Dataset {
 public:
  virtual ~Dataset() = default;

  // Distinct samples of a split: one epoch. Zero where eval_fraction is zero.
  virtual std::uint64_t samples(Split split) const = 0;

  // Tokens of the source, both splits together; none where it never ends.
  virtual std::optional<std::uint64_t> tokens() const = 0;

  // Fills `tokens` (seq_length + 1 of them: inputs and, one further, labels) with global sample
  // `sample` = step * global_batch_size + place in the batch. Training goes through its samples
  // epoch by epoch, each in another order; evaluation reads them in file order, again and again.
  virtual void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const = 0;
};

// ConfigError where the data cannot fill one sample of each split or does not fit the vocabulary;
// SystemError where it cannot be read.
std::unique_ptr<Dataset> open_dataset(const config::DatasetConfig& config,
                                      std::int64_t seq_length,
                                      std::int64_t vocab_size,
                                      std::uint64_t seed);

}  // namespace weft::data
