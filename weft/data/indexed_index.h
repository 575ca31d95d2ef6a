// Format of the .idx file of Megatron's indexed dataset, little-endian:
//   9 bytes "MMIDIDX\0\0"; u64 version 1; u8 token type; u64 sequences; u64 boundaries;
//   i32 lengths[sequences]; i64 byte offsets[sequences]; i64 document boundaries[boundaries];
//   optionally i8 modes[sequences].
// The .bin file beside it holds the tokens back to back. All its numbers are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/data/integer_type.h"

namespace weft::data {

inline constexpr std::string_view kIndexMagic{"MMIDIDX\0\0", 9};
inline constexpr std::uint64_t kIndexVersion = 1;

// Token type codes that this reader accepts.
enum class TokenType : std::uint8_t { U8 = 1, I8 = 2, I16 = 3, I32 = 4, I64 = 5, U16 = 8 };

IntegerType integer_type(TokenType type);
std::size_t token_bytes(TokenType type);

// View of a checked .idx; the bytes must outlive it.
class IndexedIndex {
 public:
  TokenType type() const { return type_; }
  std::uint64_t sequences() const { return sequences_; }
  std::uint64_t documents() const { return boundaries_ - 1; }
  std::uint64_t tokens() const { return tokens_; }
  std::int32_t length(std::uint64_t sequence) const;
  // Byte offset of the sequence in the .bin.
  std::int64_t offset(std::uint64_t sequence) const;
  // First sequence of document `document`; documents(): the end.
  std::int64_t boundary(std::uint64_t document) const;

 private:
  friend IndexedIndex parse_index(std::span<const std::byte>, std::uint64_t, const std::string&);

  std::span<const std::byte> bytes_;
  TokenType type_ = TokenType::U8;
  std::uint64_t sequences_ = 0;
  std::uint64_t boundaries_ = 0;
  std::uint64_t tokens_ = 0;
};

// Checks all numbers against the file's size and against `bin_bytes`, the size of the .bin.
// Sequences must be contiguous and fill the .bin; boundaries must ascend from 0 to the sequence
// count. Throws ConfigError with `name`, the place and the numbers.
IndexedIndex parse_index(std::span<const std::byte> bytes,
                         std::uint64_t bin_bytes,
                         const std::string& name);

}  // namespace weft::data
