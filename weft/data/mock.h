// Mock tokens: a noisy arithmetic walk. A sample draws a start and a stride, and adds the stride
// repeatedly, modulo the vocabulary; one token in ten is random. Easy to learn and endless: it has
// no epochs.
#pragma once

#include "weft/data/dataset.h"

namespace weft::data {

class MockDataset : public Dataset {
 public:
  MockDataset(std::int64_t seq_length, std::int64_t vocab_size, std::uint64_t seed);

  std::uint64_t samples(Split split) const override;
  std::optional<std::uint64_t> tokens() const override { return std::nullopt; }
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  std::uint64_t seq_length_;
  std::uint32_t vocab_size_;
  std::uint64_t seed_;
};

}  // namespace weft::data
