// Casts for the standard library: an index, a floating-point number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::base {

constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
constexpr double number(std::int64_t value) { return static_cast<double>(value); }

}  // namespace weft::base
