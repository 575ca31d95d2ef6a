#include "weft/data/indexed.h"

#include <cstring>

#include "weft/base/check.h"

namespace weft::data {
namespace {

using base::text;

template <typename Number>
std::int64_t load(std::span<const std::byte> bytes, std::uint64_t position) {
  Number value;
  std::memcpy(&value, bytes.data() + position * sizeof value, sizeof value);
  return value;
}

}  // namespace

IndexedDataset::IndexedDataset(const config::DatasetConfig& config,
                               std::int64_t seq_length,
                               std::int64_t vocab_size,
                               std::uint64_t seed)
    : bin_name_(config.path + ".bin"),
      vocab_size_(vocab_size),
      idx_(config.path + ".idx"),
      bin_(bin_name_),
      index_(parse_index(idx_.bytes(), bin_.bytes().size(), config.path + ".idx")),
      order_(bin_name_, index_.tokens(), seq_length, config.eval_fraction, seed) {}

std::int64_t IndexedDataset::token(std::uint64_t position) const {
  switch (index_.type()) {
    case TokenType::U8:
      return load<std::uint8_t>(bin_.bytes(), position);
    case TokenType::I8:
      return load<std::int8_t>(bin_.bytes(), position);
    case TokenType::I16:
      return load<std::int16_t>(bin_.bytes(), position);
    case TokenType::I32:
      return load<std::int32_t>(bin_.bytes(), position);
    case TokenType::I64:
      return load<std::int64_t>(bin_.bytes(), position);
    case TokenType::U16:
      return load<std::uint16_t>(bin_.bytes(), position);
  }
  UNREACHABLE("token type {}", static_cast<int>(index_.type()));
}

void IndexedDataset::read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const {
  CHECK(tokens.size() == order_.seq_length() + 1, "{} tokens", tokens.size());
  std::uint64_t at = order_.first_token(split, sample);
  for (std::int32_t& out : tokens) {
    const std::int64_t id = token(at);
    if (id < 0 || id >= vocab_size_) {
      throw base::ConfigError(
          text("'{}': token {} is id {}, outside model.vocab_size={}; use the vocabulary the file "
               "was made with",
               bin_name_,
               at,
               id,
               vocab_size_));
    }
    out = static_cast<std::int32_t>(id);
    ++at;
  }
}

}  // namespace weft::data
