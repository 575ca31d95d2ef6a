// Counts that travel with a code, so that a message that lost or changed bytes is known as one.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::base {

// A count takes the lower 40 bits of a sealed one, the code the upper 24.
inline constexpr std::int64_t kLargestSealable = (std::int64_t{1} << 40) - 1;

// The code is of the count, its place in the message and the member of the group that counted:
// neither another number nor one from another place or member fits. `count` is from 0 to
// kLargestSealable.
std::int64_t seal(std::int64_t count, std::int64_t member, std::int64_t place);
// The count in a sealed one; none where the code is not that of this member and place.
std::optional<std::int64_t> unseal(std::int64_t sealed, std::int64_t member, std::int64_t place);

}  // namespace weft::base
