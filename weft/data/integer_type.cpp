#include "weft/data/integer_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::data {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

using Named = std::pair<IntegerType, std::string_view>;
constexpr std::array<Named, 8> kWords{Named{IntegerType::U8, "u8"},
                                      {IntegerType::I8, "i8"},
                                      {IntegerType::U16, "u16"},
                                      {IntegerType::I16, "i16"},
                                      {IntegerType::U32, "u32"},
                                      {IntegerType::I32, "i32"},
                                      {IntegerType::U64, "u64"},
                                      {IntegerType::I64, "i64"}};

template <typename Stored>
void widen_as(std::span<const std::byte> bytes, std::span<std::int64_t> out) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  CHECK(bytes.size() == out.size() * sizeof(Stored), "{} bytes", bytes.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = std::cmp_greater(value, kLargest) ? kLargest : static_cast<std::int64_t>(value);
  }
}

}  // namespace

std::size_t bytes_of(IntegerType type) {
  switch (type) {
    case IntegerType::U8:
    case IntegerType::I8:
      return 1;
    case IntegerType::U16:
    case IntegerType::I16:
      return 2;
    case IntegerType::U32:
    case IntegerType::I32:
      return 4;
    case IntegerType::U64:
    case IntegerType::I64:
      return 8;
  }
  UNREACHABLE("integer type {}", static_cast<int>(type));
}

std::string_view word(IntegerType type) {
  const auto* found = std::ranges::find(kWords, type, &Named::first);
  CHECK(found != kWords.end(), "integer type {}", static_cast<int>(type));
  return found->second;
}

std::optional<IntegerType> integer_type_of(std::string_view word) {
  const auto* found = std::ranges::find(kWords, word, &Named::second);
  if (found == kWords.end()) return std::nullopt;
  return found->first;
}

std::string integer_type_words() {
  std::string all;
  for (const auto& [type, name] : kWords) all += base::text("{}{}", all.empty() ? "" : ", ", name);
  return all;
}

void widen(IntegerType type, std::span<const std::byte> bytes, std::span<std::int64_t> out) {
  switch (type) {
    case IntegerType::U8:
      return widen_as<std::uint8_t>(bytes, out);
    case IntegerType::I8:
      return widen_as<std::int8_t>(bytes, out);
    case IntegerType::U16:
      return widen_as<std::uint16_t>(bytes, out);
    case IntegerType::I16:
      return widen_as<std::int16_t>(bytes, out);
    case IntegerType::U32:
      return widen_as<std::uint32_t>(bytes, out);
    case IntegerType::I32:
      return widen_as<std::int32_t>(bytes, out);
    case IntegerType::U64:
      return widen_as<std::uint64_t>(bytes, out);
    case IntegerType::I64:
      return widen_as<std::int64_t>(bytes, out);
  }
  UNREACHABLE("integer type {}", static_cast<int>(type));
}

}  // namespace weft::data
