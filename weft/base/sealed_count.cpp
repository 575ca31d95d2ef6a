#include "weft/base/sealed_count.h"

#include "weft/base/random.h"

namespace weft::base {

std::int64_t seal(std::int64_t count, std::int64_t member, std::int64_t place) {
  constexpr int kCountBits = 40;
  const auto number = static_cast<std::uint64_t>(count);
  const auto code = philox(number, static_cast<std::uint64_t>(place), member)[0];
  return static_cast<std::int64_t>(std::uint64_t{code} << kCountBits | number);
}

std::optional<std::int64_t> unseal(std::int64_t sealed, std::int64_t member, std::int64_t place) {
  const std::int64_t count = sealed & kLargestSealable;
  if (seal(count, member, place) != sealed) return std::nullopt;
  return count;
}

}  // namespace weft::base
