// Integers as they lie in files, little-endian: how wide, and whether signed.
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
// "u8, i8, ...": every word.
std::string integer_type_words();

// Fills `out` from `bytes`, which hold as many. An u64 above the largest std::int64_t becomes that.
void widen(IntegerType type, std::span<const std::byte> bytes, std::span<std::int64_t> out);

}  // namespace weft::data
