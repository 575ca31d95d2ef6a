#include "weft/data/indexed_index.h"

#include <cstring>

#include "weft/base/check.h"

namespace weft::data {
namespace {

using base::text;

constexpr std::size_t kHeaderBytes = 34;
constexpr std::uint64_t kBytesPerSequence = 12;
constexpr std::uint64_t kBytesPerBoundary = 8;

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::uint64_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

[[noreturn]] void reject(const std::string& name, const std::string& what) {
  throw base::ConfigError(text("'{}' is not a readable indexed dataset: {}", name, what));
}

TokenType checked_type(std::uint8_t code, const std::string& name) {
  switch (code) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 8:
      return static_cast<TokenType>(code);
    case 6:
    case 7:
      reject(name, text("its tokens are floating point (type code {}); integers are needed", code));
  }
  reject(name, text("its token type code is {}; known are 1 to 5 and 8", code));
}

void check_header(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < kHeaderBytes) {
    reject(name, text("it has {} bytes; its header alone has {}", bytes.size(), kHeaderBytes));
  }
  if (std::memcmp(bytes.data(), kIndexMagic.data(), kIndexMagic.size()) != 0) {
    reject(name, "it does not begin with MMIDIDX");
  }
  const auto version = number_at<std::uint64_t>(bytes, 9);
  if (version != kIndexVersion) reject(name, text("its version is {}; 1 is read", version));
}

// Bounds each count by the file's size first, so that the sums below cannot overflow.
void check_size(std::uint64_t size,
                std::uint64_t sequences,
                std::uint64_t boundaries,
                const std::string& name) {
  if (sequences > size / kBytesPerSequence || boundaries > size / kBytesPerBoundary) {
    reject(name,
           text("it claims {} sequences and {} document boundaries but has only {} bytes",
                sequences,
                boundaries,
                size));
  }
  const std::uint64_t plain =
      kHeaderBytes + sequences * kBytesPerSequence + boundaries * kBytesPerBoundary;
  if (size != plain && size != plain + sequences) {
    reject(name,
           text("{} sequences and {} document boundaries take {} bytes ({} with modes); it has {}",
                sequences,
                boundaries,
                plain,
                plain + sequences,
                size));
  }
}

}  // namespace

IntegerType integer_type(TokenType type) {
  switch (type) {
    case TokenType::U8:
      return IntegerType::U8;
    case TokenType::I8:
      return IntegerType::I8;
    case TokenType::I16:
      return IntegerType::I16;
    case TokenType::I32:
      return IntegerType::I32;
    case TokenType::I64:
      return IntegerType::I64;
    case TokenType::U16:
      return IntegerType::U16;
  }
  UNREACHABLE("token type {}", static_cast<int>(type));
}

std::size_t token_bytes(TokenType type) { return bytes_of(integer_type(type)); }

std::int32_t IndexedIndex::length(std::uint64_t sequence) const {
  CHECK(sequence < sequences_, "sequence {} of {}", sequence, sequences_);
  return number_at<std::int32_t>(bytes_, kHeaderBytes + 4 * sequence);
}

std::int64_t IndexedIndex::offset(std::uint64_t sequence) const {
  CHECK(sequence < sequences_, "sequence {} of {}", sequence, sequences_);
  return number_at<std::int64_t>(bytes_, kHeaderBytes + 4 * sequences_ + 8 * sequence);
}

std::int64_t IndexedIndex::boundary(std::uint64_t document) const {
  CHECK(document < boundaries_, "boundary {} of {}", document, boundaries_);
  return number_at<std::int64_t>(bytes_,
                                 kHeaderBytes + kBytesPerSequence * sequences_ + 8 * document);
}

IndexedIndex parse_index(std::span<const std::byte> bytes,
                         std::uint64_t bin_bytes,
                         const std::string& name) {
  check_header(bytes, name);
  IndexedIndex index;
  index.bytes_ = bytes;
  index.type_ = checked_type(number_at<std::uint8_t>(bytes, 17), name);
  index.sequences_ = number_at<std::uint64_t>(bytes, 18);
  index.boundaries_ = number_at<std::uint64_t>(bytes, 26);
  check_size(bytes.size(), index.sequences_, index.boundaries_, name);

  const std::uint64_t width = token_bytes(index.type_);
  std::uint64_t at = 0;  // never past bin_bytes
  for (std::uint64_t i = 0; i < index.sequences_; ++i) {
    const std::int32_t length = index.length(i);
    if (length < 0) reject(name, text("sequence {} has length {}", i, length));
    if (index.offset(i) < 0 || static_cast<std::uint64_t>(index.offset(i)) != at) {
      reject(name, text("sequence {} begins at byte {}; {} expected", i, index.offset(i), at));
    }
    const std::uint64_t size = static_cast<std::uint64_t>(length) * width;
    if (size > bin_bytes - at) {
      reject(name,
             text("sequence {} ends at byte {}, past the {} bytes of the .bin beside it",
                  i,
                  at + size,
                  bin_bytes));
    }
    at += size;
  }
  if (at != bin_bytes) {
    reject(name, text("its sequences take {} bytes, the .bin beside it has {}", at, bin_bytes));
  }
  index.tokens_ = at / width;

  std::int64_t last = 0;
  for (std::uint64_t i = 0; i < index.boundaries_; ++i) {
    const std::int64_t boundary = index.boundary(i);
    if (boundary < last || (i == 0 && boundary != 0)) {
      reject(name, text("document boundary {} is {} after {}", i, boundary, last));
    }
    last = boundary;
  }
  if (index.boundaries_ == 0 || static_cast<std::uint64_t>(last) != index.sequences_) {
    reject(name, text("its documents end at sequence {} of {}", last, index.sequences_));
  }
  return index;
}

}  // namespace weft::data
