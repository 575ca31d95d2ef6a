#include "weft/data/indexed.h"

#include <algorithm>
#include <limits>

#include "weft/base/check.h"
#include "weft/data/splits.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::uint64_t kStretchBytes = std::uint64_t{1} << 20;

// Catches shell completion to one of the two files.
void refuse_ending(const std::string& path) {
  std::error_code error;
  for (const std::string_view ending : {".bin", ".idx"}) {
    if (!path.ends_with(ending) || fs::exists(path + ".idx", error)) continue;
    throw base::ConfigError(
        text("dataset.path='{}': the data are two files, .idx and .bin: give their path without "
             "its ending: dataset.path={}",
             path,
             path.substr(0, path.size() - ending.size())));
  }
}

// Sequences are contiguous, so consecutive ones are a range of tokens.
SampleOrder order_of(const IndexedFiles& files,
                     const config::DatasetConfig& config,
                     std::int64_t seq_length,
                     std::uint64_t seed) {
  const IndexedIndex& index = files.index();
  const std::string& name = files.bin().name();
  if (config.split.empty()) {
    return SampleOrder(name, index.tokens(), seq_length, config.eval_fraction, seed);
  }
  const auto first_token = [&](std::uint64_t sequence) {
    return sequence == index.sequences()
               ? index.tokens()
               : static_cast<std::uint64_t>(index.offset(sequence)) / token_bytes(index.type());
  };
  std::array<TokenRange, kSplits> splits;
  const auto ranges = split_ranges(parse_split(config.split), index.sequences());
  for (std::size_t i = 0; i < splits.size(); ++i) {
    splits[i] = {.begin = first_token(ranges[i].begin), .end = first_token(ranges[i].end)};
  }
  return SampleOrder(name, index.tokens(), splits, seq_length, seed);
}

// True if no id of the type can exceed the vocabulary.
bool always_fits(TokenType type, std::int64_t vocab_size) {
  switch (type) {
    case TokenType::U8:
      return vocab_size > std::numeric_limits<std::uint8_t>::max();
    case TokenType::U16:
      return vocab_size > std::numeric_limits<std::uint16_t>::max();
    case TokenType::I8:
    case TokenType::I16:
    case TokenType::I32:
    case TokenType::I64:
      return false;
  }
  UNREACHABLE("token type {}", static_cast<int>(type));
}

}  // namespace

IndexedDataset::IndexedDataset(const config::DatasetConfig& config,
                               std::int64_t seq_length,
                               std::int64_t vocab_size,
                               std::uint64_t seed,
                               std::uint64_t judged_bytes)
    : vocab_size_(vocab_size),
      files_((refuse_ending(config.path), config.path)),
      order_(order_of(files_, config, seq_length, seed)) {
  judge_ids(judged_bytes);
}

void IndexedDataset::judge_ids(std::uint64_t most_bytes) const {
  if (always_fits(index().type(), vocab_size_)) return;
  const std::uint64_t stretch = kStretchBytes / token_bytes(index().type());
  const std::uint64_t stretches = (index().tokens() + stretch - 1) / stretch;
  const std::uint64_t judged =
      std::min(stretches, std::max<std::uint64_t>(1, most_bytes / kStretchBytes));
  std::vector<std::int32_t> tokens;
  for (std::uint64_t i = 0; i < judged; ++i) {
    const std::uint64_t first = (judged < 2 ? 0 : i * (stretches - 1) / (judged - 1)) * stretch;
    tokens.resize(std::min(stretch, index().tokens() - first));
    read_tokens(first, tokens);
  }
}

void IndexedDataset::read_tokens(std::uint64_t first, std::span<std::int32_t> tokens) const {
  std::vector<std::int64_t> ids(tokens.size());
  files_.read(first, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size_) {
      throw base::ConfigError(
          text("'{}': token {} is id {}, outside model.vocab_size={}; use the vocabulary the file "
               "was made with",
               files_.bin().name(),
               first + i,
               ids[i],
               vocab_size_));
    }
    tokens[i] = static_cast<std::int32_t>(ids[i]);
  }
}

void IndexedDataset::read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const {
  CHECK(tokens.size() == order_.seq_length() + 1, "{} tokens", tokens.size());
  read_tokens(order_.first_token(split, sample), tokens);
}

}  // namespace weft::data
