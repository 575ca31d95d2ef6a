// WHAT IS READ? Sources of token samples. A sample depends on (seed, split, index) and the data,
// never on the layout or the order of requests. Every layout therefore trains on the same tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/config/config.h"

namespace weft::data {

// Eval is Megatron's validation split. Test exists only with dataset.split or
// dataset.blend_per_split.
enum class Split { Train, Eval, Test };
inline constexpr int kSplits = 3;

std::string_view word(Split split);  // "training", "evaluation", "test"

class Dataset {
 public:
  virtual ~Dataset() = default;

  // Distinct samples of a split: one epoch. 0: empty split.
  virtual std::uint64_t samples(Split split) const = 0;

  // Tokens of the source over all splits; nullopt: endless.
  virtual std::optional<std::uint64_t> tokens() const = 0;

  // Fills `tokens` (seq_length + 1: inputs and labels, shifted by one) with global sample `sample`
  // = step * global_batch_size + place in the batch. Training shuffles each epoch anew; other
  // splits are read in file order, repeatedly. Throws ConfigError if the split is empty.
  virtual void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const = 0;

  // Short remark on the source; empty: none.
  virtual std::string remark() const { return ""; }
};

// Opens dataset.path, or the blend of dataset.blend, split by dataset.split or
// dataset.eval_fraction; or the data sets of dataset.blend_per_split. Throws ConfigError if
// training, or a split that eval_fraction asks for, is empty. Throws it too for an invalid blend or
// split, and for data outside the vocabulary. Throws SystemError if data cannot be read.
std::unique_ptr<Dataset> open_dataset(const config::DatasetConfig& config,
                                      std::int64_t seq_length,
                                      std::int64_t vocab_size,
                                      std::uint64_t seed);

// True if the config gives the test split data. Throws ConfigError for an invalid dataset.split or
// dataset.blend_per_split.
bool has_test_split(const config::DatasetConfig& config);

}  // namespace weft::data
