#include "weft/model/rotary.h"

#include <cmath>

#include "weft/config/yarn.h"

namespace weft::model {

using config::yarn_magnitude;

kernels::RotaryAngles rotary_angles(const config::ModelConfig& config) {
  kernels::RotaryAngles angles{.base = config.rotary_base, .yarn = std::nullopt};
  if (config.rope_type == config::RopeType::Rope) return angles;
  const double factor = config.rotary_scaling_factor;
  angles.yarn = {.factor = factor,
                 .original_positions = static_cast<double>(config.original_max_position_embeddings),
                 .beta_fast = config.beta_fast,
                 .beta_slow = config.beta_slow,
                 .magnitude = yarn_magnitude(factor, config.mscale) /
                              yarn_magnitude(factor, config.mscale_all_dim)};
  return angles;
}

kernels::Rotary query_rotary(const config::ModelConfig& config) {
  using Pairs = kernels::Rotary::Pairs;
  const bool neighbours = config.rotary_interleaved.value_or(config.multi_latent_attention);
  return {.pairs = neighbours ? Pairs::Neighbours : Pairs::Halves,
          .unturned = config.multi_latent_attention ? config.qk_head_dim : 0};
}

// The magnitude of the rotating channels is in the angle table. Latent attention also has channels
// that do not rotate. The magnitude is therefore removed from the table and applied here, once for
// each factor of the product.
float score_scale(const config::ModelConfig& config) {
  if (!config.multi_latent_attention) {
    return 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
  }
  const double root = std::sqrt(static_cast<double>(config.latent_head_dim()));
  const bool stretched = config.rope_type == config::RopeType::Yarn;
  const double all =
      stretched ? yarn_magnitude(config.rotary_scaling_factor, config.mscale_all_dim) : 1.0;
  return static_cast<float>(all * all / root);
}

}  // namespace weft::model
