// Bench of matrix products on a device: a model's dense products, and its experts' grouped
// products.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/measure/device/device_kernels.h"
#include "weft/measure/device/device_rate.h"
#include "weft/measure/device/device_timer.h"

namespace weft::measure {

struct DenseProduct {
  std::string name;  // "qkv"
  std::int64_t rows = 0, n = 0, k = 0;
  tensor::DType result = tensor::DType::BF16;    // result of the forward product
  tensor::DType gradient = tensor::DType::BF16;  // gradient of that result, read by dgrad and wgrad
};
// Projections, router and head of one micro-batch; the head covers at most 4096 tokens.
std::vector<DenseProduct> dense_products(const config::Config& config);

struct GroupedProduct {
  std::string name;                // "FC1"
  std::string rows_name;           // "128 x 1024 rows", "128 x 0 to 2047 rows"
  std::vector<std::int64_t> rows;  // rows of each expert
  std::int64_t n = 0, k = 0;

  std::int64_t all_rows() const;
};
// FC1 and FC2 of the model's experts with 256, 1024 and 0 to 2047 rows each. One more case has an
// eighth of the experts with 8192 rows.
std::vector<GroupedProduct> grouped_products(const config::ModelConfig& model);

struct ProductRates {
  DeviceRate forward, dgrad;
  DeviceRate wgrad, adding_wgrad;  // fp32; assigning, and accumulating

  std::vector<DeviceRate> all() const { return {forward, dgrad, wgrad, adding_wgrad}; }
};
ProductRates bench_product(DeviceTimer& timer,
                           const DenseProduct& product,
                           const NoteOperation& note);
ProductRates bench_product(DeviceTimer& timer,
                           const GroupedProduct& product,
                           const NoteOperation& note);

}  // namespace weft::measure
