// Megatron's indexed dataset. Samples are cut from the tokens in file order,
// documents one after the other with nothing between them, and the samples are shuffled, not the
// documents: a simpler order than Megatron's, the same tokens.
#pragma once

#include "weft/data/indexed_files.h"
#include "weft/data/sample_order.h"

namespace weft::data {

class IndexedDataset : public Dataset {
 public:
  // Reads `config.path` + ".idx" and ".bin". Token ids are judged here, so that a wrong vocabulary
  // is found before the first step and not hours after it: all of them in a file of up to
  // `judged_bytes`, of a larger one so many in stretches from its whole length. ConfigError names
  // the first that lies outside.
  static constexpr std::uint64_t kJudgedBytes = std::uint64_t{1}
                                                << 30;  // a second or two of a disk

  IndexedDataset(const config::DatasetConfig& config,
                 std::int64_t seq_length,
                 std::int64_t vocab_size,
                 std::uint64_t seed,
                 std::uint64_t judged_bytes = kJudgedBytes);

  const IndexedIndex& index() const { return files_.index(); }

  std::uint64_t samples(Split split) const override { return order_.samples(split); }
  std::optional<std::uint64_t> tokens() const override { return order_.tokens(); }
  // ConfigError where a token lies outside the vocabulary, with its file, place and value;
  // SystemError where the file has become shorter.
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  // Tokens [first, first + tokens.size()).
  void read_tokens(std::uint64_t first, std::span<std::int32_t> tokens) const;
  void judge_ids(std::uint64_t most_bytes) const;

  std::int64_t vocab_size_;
  IndexedFiles files_;
  SampleOrder order_;
};

}  // namespace weft::data
