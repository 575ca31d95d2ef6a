// Number formats of elements: in memory, in products, on the wire and in files.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weft::base {

// MXFP8 and NVFP4 store a scale for each block of values.
enum class DType { F32, BF16, F16, F64, F8E4M3, MXFP8, NVFP4, I16, I32, I64 };

struct DTypeRow {
  DType dtype;
  std::string_view name;     // as in configs and on the command line
  int bits;                  // one value
  int values_per_scale = 0;  // values that share a scale of 8 bits; 0: no such scales
};

inline constexpr std::array<DTypeRow, 10> kDTypes{{{DType::F32, "fp32", 32},
                                                   {DType::BF16, "bf16", 16},
                                                   {DType::F16, "fp16", 16},
                                                   {DType::F64, "fp64", 64},
                                                   {DType::F8E4M3, "fp8", 8},
                                                   {DType::MXFP8, "mxfp8", 8, 32},
                                                   {DType::NVFP4, "nvfp4", 4, 16},
                                                   {DType::I16, "int16", 16},
                                                   {DType::I32, "int32", 32},
                                                   {DType::I64, "int64", 64}}};

constexpr const DTypeRow& row_of(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }
constexpr std::string_view name_of(DType dtype) { return row_of(dtype).name; }

// Bytes of one value; values narrower than a byte are an error.
std::int64_t size_of(DType dtype);

// Bytes per value, with the value's share of its scale.
constexpr double scaled_size_of(DType dtype) {
  const DTypeRow& row = row_of(dtype);
  return row.bits / 8.0 + (row.values_per_scale > 0 ? 1.0 / row.values_per_scale : 0);
}

}  // namespace weft::base
