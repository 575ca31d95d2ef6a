// Integer types of files, little-endian: width and sign.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::data {

enum class IntegerType { U8, I8, U16, I16, U32, I32, U64, I64 };

std::size_t bytes_of(IntegerType type);
// "u16"
std::string_view word(IntegerType type);
std::optional<IntegerType> integer_type_of(std::string_view word);
// "u8, i8, ...": all words.
std::string integer_type_words();

// Widens `bytes` to `out`. A u64 above the largest std::int64_t becomes that.
void widen(IntegerType type, std::span<const std::byte> bytes, std::span<std::int64_t> out);

}  // namespace weft::data
