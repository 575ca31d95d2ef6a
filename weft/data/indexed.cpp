#include "weft/data/indexed.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "weft/base/check.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;
using base::text;

// What is judged when a file is opened: a gigabyte takes a second or two from a disk.
constexpr std::uint64_t kJudgedBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kStretchBytes = std::uint64_t{1} << 20;

std::vector<std::byte> read_all(const fs::path& path) {
  const base::InputFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

// People complete the name of one of the two files.
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

template <typename Stored>
void widen(std::span<const std::byte> bytes, std::span<std::int64_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = value;
  }
}

void widen(TokenType type, std::span<const std::byte> bytes, std::span<std::int64_t> out) {
  switch (type) {
    case TokenType::U8:
      return widen<std::uint8_t>(bytes, out);
    case TokenType::I8:
      return widen<std::int8_t>(bytes, out);
    case TokenType::I16:
      return widen<std::int16_t>(bytes, out);
    case TokenType::I32:
      return widen<std::int32_t>(bytes, out);
    case TokenType::I64:
      return widen<std::int64_t>(bytes, out);
    case TokenType::U16:
      return widen<std::uint16_t>(bytes, out);
  }
  UNREACHABLE("token type {}", static_cast<int>(type));
}

// Whether no id of the type can lie outside the vocabulary.
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
                               std::uint64_t seed)
    : vocab_size_(vocab_size),
      idx_((refuse_ending(config.path), read_all(config.path + ".idx"))),
      bin_(config.path + ".bin"),
      index_(parse_index(idx_, bin_.size(), config.path + ".idx")),
      order_(bin_.name(), index_.tokens(), seq_length, config.eval_fraction, seed) {
  judge_ids();
}

void IndexedDataset::judge_ids() const {
  if (always_fits(index_.type(), vocab_size_)) return;
  const std::uint64_t stretch = kStretchBytes / token_bytes(index_.type());
  const std::uint64_t stretches = (index_.tokens() + stretch - 1) / stretch;
  const std::uint64_t judged = std::min(stretches, kJudgedBytes / kStretchBytes);
  std::vector<std::int32_t> tokens;
  for (std::uint64_t i = 0; i < judged; ++i) {
    const std::uint64_t first = (judged < 2 ? 0 : i * (stretches - 1) / (judged - 1)) * stretch;
    tokens.resize(std::min(stretch, index_.tokens() - first));
    read_tokens(first, tokens);
  }
}

void IndexedDataset::read_tokens(std::uint64_t first, std::span<std::int32_t> tokens) const {
  const std::uint64_t width = token_bytes(index_.type());
  std::vector<std::byte> bytes(tokens.size() * width);
  bin_.read(first * width, bytes);
  std::vector<std::int64_t> ids(tokens.size());
  widen(index_.type(), bytes, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size_) {
      throw base::ConfigError(
          text("'{}': token {} is id {}, outside model.vocab_size={}; use the vocabulary the file "
               "was made with",
               bin_.name(),
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
