#include "weft/data/mock.h"

#include <limits>

#include "weft/base/check.h"
#include "weft/base/random.h"

namespace weft::data {

namespace {
constexpr std::uint32_t kStrides = 4;
constexpr std::uint32_t kNoiseOneIn = 10;
}  // namespace

MockDataset::MockDataset(std::int64_t seq_length, std::int64_t vocab_size, std::uint64_t seed)
    : seq_length_(static_cast<std::uint64_t>(seq_length)),
      vocab_size_(static_cast<std::uint32_t>(vocab_size)),
      seed_(base::combine(seed, base::hash("mock"))) {}

std::uint64_t MockDataset::samples(Split split) const {
  return split == Split::Test ? 0 : std::numeric_limits<std::uint64_t>::max();
}

void MockDataset::read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const {
  CHECK(tokens.size() == seq_length_ + 1, "{} tokens, expected {}", tokens.size(), seq_length_ + 1);
  const std::uint64_t split_key = base::combine(seed_, static_cast<std::uint64_t>(split));
  const std::uint64_t key = base::combine(split_key, sample);
  const auto opening = base::philox(key, 0, 1);
  std::uint32_t token = opening[0] % vocab_size_;
  const std::uint32_t stride = 1 + opening[1] % kStrides;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto draw = base::philox(key, i, 0);
    if (draw[0] % kNoiseOneIn == 0) token = draw[1] % vocab_size_;
    tokens[i] = static_cast<std::int32_t>(token);
    token = static_cast<std::uint32_t>((std::uint64_t{token} + stride) % vocab_size_);
  }
}

}  // namespace weft::data
