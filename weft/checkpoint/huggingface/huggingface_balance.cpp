#include "weft/checkpoint/huggingface/huggingface_balance.h"

namespace weft::checkpoint {
namespace {

using config::LoadBalancing;

constexpr const char* kCoefficient = "router_aux_loss_coef";
constexpr double kLargestCoefficient = 1000;  // bound of model.moe_aux_loss_coeff

// Default of a missing key.
double default_coefficient(Family family) {
  switch (family) {
    case Family::Qwen3Moe:
    case Family::Mixtral:
      return 0.001;
    case Family::Olmoe:
      return 0.01;
    case Family::DeepseekV3:
    case Family::DeepseekV2:
      return 0;
  }
  return 0;
}

}  // namespace

void read_balance(const HuggingFaceValues& keys, Family family, config::ModelConfig& model) {
  const char* key = is_deepseek(family) ? "aux_loss_alpha" : kCoefficient;
  const double coefficient =
      keys.number(key, default_coefficient(family), {0, kLargestCoefficient});
  const bool is_by_sequence = is_deepseek(family) && keys.flag("seq_aux");
  model.moe_router_load_balancing_type = {is_by_sequence ? LoadBalancing::SeqAuxLoss
                                                         : LoadBalancing::AuxLoss};
  model.moe_aux_loss_coeff = {coefficient};
}

void write_balance(const config::ModelConfig& model, Family family, base::Json& json) {
  const double coefficient = model.aux_loss_coeff(LoadBalancing::AuxLoss);
  if (!is_deepseek(family)) {
    json[kCoefficient] = coefficient;
    return;
  }
  const double by_sequence = model.aux_loss_coeff(LoadBalancing::SeqAuxLoss);
  if (coefficient == 0 && by_sequence == 0) return;
  json["aux_loss_alpha"] = by_sequence != 0 ? by_sequence : coefficient;
  json["seq_aux"] = by_sequence != 0;
}

}  // namespace weft::checkpoint
