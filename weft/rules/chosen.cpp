#include "weft/rules/chosen.h"

namespace weft::rules {

using namespace config;

bool recomputes(const ModelConfig& model, RecomputeModule module) {
  return model.recompute_granularity == RecomputeGranularity::Selective &&
         model.recompute_modules && contains(*model.recompute_modules, module);
}

bool offloads(const ModelConfig& model, OffloadModule module) {
  return model.fine_grained_activation_offloading && contains(model.offload_modules, module);
}

bool drops_and_pads(const ModelConfig& model) {
  return model.moe_expert_capacity_factor && model.moe_pad_expert_input_to_capacity;
}

bool every_layer_is_moe(const Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!judge.sound({"model.num_layers", "model.moe_layer_freq"})) return false;
  const auto kinds = static_cast<std::int64_t>(model.moe_layer_freq.size());
  return (kinds == 1 || kinds == model.num_layers) && model.moe_layers() == model.num_layers;
}

bool is_quantized(const ModelConfig& model) { return model.fp8 || model.fp4; }

}  // namespace weft::rules
