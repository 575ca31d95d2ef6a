// Counts sent with an integrity code, so that a damaged message is detected.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::base {

// The count takes the lower 40 bits, the code the upper 24.
inline constexpr std::int64_t kLargestSealable = (std::int64_t{1} << 40) - 1;

// Adds a code over the count, its place in the message and the group member that counted. Another
// number, place or member therefore does not fit. `count` is from 0 to kLargestSealable.
std::int64_t seal(std::int64_t count, std::int64_t member, std::int64_t place);
// Count of a sealed number; nullopt: the code does not match member and place.
std::optional<std::int64_t> unseal(std::int64_t sealed, std::int64_t member, std::int64_t place);

}  // namespace weft::base
