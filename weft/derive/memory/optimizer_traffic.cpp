#include "weft/derive/memory/optimizer_traffic.h"

#include "weft/derive/memory/memory.h"
#include "weft/derive/memory/parameter_buffers.h"

namespace weft::derive {
namespace {

constexpr double kFullBytes = 4, kHalfBytes = 2;

}  // namespace

OptimizerTraffic optimizer_traffic(const config::Config& config) {
  const ParameterBytes each = bytes_of_parameter(config);
  const auto weight = static_cast<double>(each.weight);
  const auto gradient = static_cast<double>(each.gradient);
  const bool has_masters = weight < kFullBytes, remainders = keeps_remainders(config);
  const bool is_small = remainders || keeps_half_masters(config);
  const double master = !has_masters ? 0 : is_small ? kHalfBytes : kFullBytes;
  const double moments = static_cast<double>(each.optimizer) - master;
  const bool reads_weights = !has_masters || remainders;
  return {.device = 2 * (moments + master) + gradient + (reads_weights ? 2 : 1) * weight,
          .host = 2 * (moments + (has_masters ? master : kFullBytes)) + gradient +
                  (has_masters ? weight : 0),
          .download = gradient,
          .upload = weight,
          .gradient = gradient};
}

double reduced_bytes(const config::Config& config) {
  return gradient_wire(config) == base::DType::F32 ? kFullBytes : kHalfBytes;
}

double gathered_bytes(const config::Config& config) {
  if (config.ddp.fp8_param_gather) return 1;
  return static_cast<double>(bytes_of_parameter(config).weight);
}

}  // namespace weft::derive
