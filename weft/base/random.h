// Counter-based random numbers (Philox 4x32-10). A value is a pure function of (key, counter): it
// depends on its purpose, never on the rank or thread that draws it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace weft::base {

std::array<std::uint32_t, 4> philox(std::uint64_t key,
                                    std::uint64_t counter_low,
                                    std::uint64_t counter_high);

// Stable 64-bit hash (FNV-1a), to turn a name into a key.
std::uint64_t hash(std::string_view text);
std::uint64_t combine(std::uint64_t a, std::uint64_t b);

// Draws from stream `key`; elements are independent of each other.
double uniform(std::uint64_t key, std::uint64_t i);  // in [0, 1)
double normal(std::uint64_t key, std::uint64_t i);   // mean 0, deviation 1
// Elements [first, first + out.size()) of a long row of fp32 normals; one draw gives four. The
// values differ from those of normal().
void normals(std::uint64_t key, std::uint64_t first, std::span<float> out);

// Permutation of [0, size): image of element i under `key`. size >= 1, i < size.
std::uint64_t permute(std::uint64_t key, std::uint64_t i, std::uint64_t size);

}  // namespace weft::base
