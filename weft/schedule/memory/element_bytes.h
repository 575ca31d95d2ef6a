// Bytes per element.
#pragma once

#include <cstdint>

#include "weft/config/model_config.h"

namespace weft::schedule {

inline constexpr std::int64_t kFp32 = 4, kInt32 = 4, kInt64 = 8;

// Bytes per weight or activation.
inline std::int64_t element_bytes(const config::ModelConfig& model) {
  return model.params_dtype == config::Precision::Fp32 ? 4 : 2;
}

}  // namespace weft::schedule
