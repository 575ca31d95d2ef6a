// Megatron's indexed dataset, memory-mapped. Samples are cut from the tokens in file order,
// documents one after the other with nothing between them, and the samples are shuffled, not the
// documents: a simpler order than Megatron's, the same tokens.
#pragma once

#include <string>

#include "weft/base/file.h"
#include "weft/data/indexed_index.h"
#include "weft/data/sample_order.h"

namespace weft::data {

class IndexedDataset : public Dataset {
 public:
  // Reads `config.path` + ".idx" and ".bin". Files must not shrink while the dataset lives.
  IndexedDataset(const config::DatasetConfig& config,
                 std::int64_t seq_length,
                 std::int64_t vocab_size,
                 std::uint64_t seed);

  const IndexedIndex& index() const { return index_; }

  std::uint64_t samples(Split split) const override { return order_.samples(split); }
  // ConfigError where a token lies outside the vocabulary, with its file, place and value.
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  std::int64_t token(std::uint64_t position) const;

  std::string bin_name_;
  std::int64_t vocab_size_;
  base::Mapping idx_;
  base::Mapping bin_;
  IndexedIndex index_;
  SampleOrder order_;
};

}  // namespace weft::data
