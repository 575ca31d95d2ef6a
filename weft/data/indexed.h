// Megatron's indexed dataset. Samples are cut from the tokens in file order, documents back to
// back. Samples are shuffled, not documents: a simpler order than Megatron's over the same tokens.
#pragma once

#include "weft/data/indexed_files.h"
#include "weft/data/sample_order.h"

namespace weft::data {

class IndexedDataset : public Dataset {
 public:
  // Reads `config.path` + ".idx" and ".bin". Token ids are checked here, so that a wrong vocabulary
  // is found before the first step. Files up to `judged_bytes` are checked completely, larger ones
  // in stretches spread over their length. Throws ConfigError naming the first id out of range.
  static constexpr std::uint64_t kJudgedBytes = std::uint64_t{1}
                                                << 30;  // a second or two of disk time

  IndexedDataset(const config::DatasetConfig& config,
                 std::int64_t seq_length,
                 std::int64_t vocab_size,
                 std::uint64_t seed,
                 std::uint64_t judged_bytes = kJudgedBytes);

  const IndexedIndex& index() const { return files_.index(); }

  std::uint64_t samples(Split split) const override { return order_.samples(split); }
  std::optional<std::uint64_t> tokens() const override { return order_.tokens(); }
  // Throws ConfigError, with file, place and value, for a token outside the vocabulary. Throws
  // SystemError if the file became shorter.
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  // Reads tokens [first, first + tokens.size()).
  void read_tokens(std::uint64_t first, std::span<std::int32_t> tokens) const;
  void judge_ids(std::uint64_t most_bytes) const;

  std::int64_t vocab_size_;
  IndexedFiles files_;
  SampleOrder order_;
};

}  // namespace weft::data
