// WHAT IS READ? Sources of token samples. What a sample holds depends on (seed, split, index) and
// the data, never on the layout or on who asks first, so that every layout trains on the same
// tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/config/config.h"

namespace weft::data {

// Eval is what Megatron calls validation. Test comes from dataset.split and dataset.blend_per_split
// alone.
enum class Split { Train, Eval, Test };
inline constexpr int kSplits = 3;

std::string_view word(Split split);  // "training", "evaluation", "test"

class Dataset {
 public:
  virtual ~Dataset() = default;

  // Distinct samples of a split: one epoch. Zero where nothing is held out for it.
  virtual std::uint64_t samples(Split split) const = 0;

  // Tokens of the source, all splits together; none where it never ends.
  virtual std::optional<std::uint64_t> tokens() const = 0;

  // Fills `tokens` (seq_length + 1 of them: inputs and, one further, labels) with global sample
  // `sample` = step * global_batch_size + place in the batch. Training goes through its samples
  // epoch by epoch, each in another order; the others are read in file order, again and again.
  // ConfigError where the split has no sample.
  virtual void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const = 0;

  // What there is to say of the source in some words; empty: nothing.
  virtual std::string remark() const { return ""; }
};

// dataset.path, or dataset.blend's several, split by dataset.split or dataset.eval_fraction; or the
// data sets that dataset.blend_per_split gives each split.
// ConfigError where training, or a share held out by eval_fraction, gets no sample, where a blend
// or a split cannot be made of what is written, and where the data do not fit the vocabulary;
// SystemError where they cannot be read.
std::unique_ptr<Dataset> open_dataset(const config::DatasetConfig& config,
                                      std::int64_t seq_length,
                                      std::int64_t vocab_size,
                                      std::uint64_t seed);

// Whether the config gives the test split something to read. ConfigError where dataset.split or
// dataset.blend_per_split cannot be made of what is written.
bool has_test_split(const config::DatasetConfig& config);

}  // namespace weft::data
