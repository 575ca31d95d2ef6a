// Number format of a key that takes some formats.
#pragma once

#include <array>
#include <string_view>

#include "weft/base/dtype.h"

namespace weft::config {

using base::DType;
using base::name_of;

// The first format is the one of a default value.
template <DType kFirst, DType... kOthers>
struct AllowedDType {
  static constexpr std::array words{base::name_of(kFirst), base::name_of(kOthers)...};
  static constexpr std::array values{kFirst, kOthers...};

  constexpr AllowedDType(DType dtype = kFirst) : value(dtype) {}

  constexpr operator DType() const { return value; }

  DType value;
};

using ParamsDType = AllowedDType<DType::F32, DType::BF16, DType::F16>;
using RouterDType = AllowedDType<DType::F32, DType::F64>;
using WireDType = AllowedDType<DType::BF16, DType::MXFP8>;
using MomentDType = AllowedDType<DType::F32, DType::F16, DType::BF16, DType::F8E4M3>;
using MainGradDType = AllowedDType<DType::F32, DType::BF16>;
using MainParamDType = AllowedDType<DType::F32, DType::F16>;

}  // namespace weft::config
