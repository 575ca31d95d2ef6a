// Compares the whole model's gradient with finite differences of its loss, including auxiliary
// losses.
#include <gtest/gtest.h>

#include "tests/train/train_support.h"

namespace weft::train {
namespace gradient_test {

// Objective of the gradient: the mean loss plus weighted router losses.
double objective(Engine& engine, const Batch& batch) {
  const StepTotals totals = forward_step(engine, batch);
  engine.program().drop_states();
  const config::ModelConfig& model = engine.config().model;
  const double moe_layers = 2;
  const RouterLosses& losses = totals.router_losses;
  return totals.loss +
         moe_layers * (model.aux_loss_coeff(config::LoadBalancing::AuxLoss) * losses.batch +
                       model.aux_loss_coeff(config::LoadBalancing::SeqAuxLoss) * losses.sequence +
                       model.moe_z_loss_coeff * losses.z);
}

std::map<std::string, std::vector<float>> gradients_of(Engine& engine, const Batch& batch) {
  std::map<std::string, std::vector<float>> gradients;
  Program& program = engine.program();
  program.begin({.batch = batch});
  engine.training().run(
      [&](const schedule::Node& node, tensor::Stream& stream) {
        if (node.piece != schedule::Piece::Optimizer) return program.run(node, stream);
        stream.synchronize();
        for (const model::Parameter& parameter : engine.parameters().all()) {
          if (!parameter.spec.is_trained()) continue;
          gradients[parameter.spec.name] = floats_of(engine, parameter.gradient);
        }
      },
      exec::Tracing::Off);
  return gradients;
}

void check_differences(const config::Config& config) {
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    const auto gradients = gradients_of(engine, batch);
    for (const model::Parameter& parameter : engine.parameters().all()) {
      if (!parameter.spec.is_trained()) continue;
      const std::vector<float>& gradient = gradients.at(parameter.spec.name);
      // Element with the largest gradient: the clearest difference.
      const auto largest =
          std::ranges::max_element(gradient, {}, [](float value) { return std::abs(value); });
      const auto i = largest - gradient.begin();
      const float before = floats_of(engine, parameter.weight)[static_cast<std::size_t>(i)];
      const float delta = 4e-4f;
      set(engine, parameter.weight, i, before + delta);
      const double above = objective(engine, batch);
      set(engine, parameter.weight, i, before - delta);
      const double below = objective(engine, batch);
      set(engine, parameter.weight, i, before);
      const double difference = (above - below) / (2.0 * delta);
      EXPECT_NEAR(*largest, difference, 0.02 * std::abs(difference) + 5e-4) << parameter.spec.name;
    }
  });
}

TEST(Gradient, EqualsFiniteDifferences) { check_differences(small_config()); }

TEST(Gradient, EqualsFiniteDifferencesForNormAndRotationInOne) {
  config::Config config = small_config();
  config.model.apply_rope_fusion = true;
  check_differences(config);
}

TEST(Gradient, EqualsFiniteDifferencesWithAuxiliaryLosses) {
  config::Config config = small_config();
  config.model.moe_aux_loss_coeff = {0.5};
  config.model.moe_z_loss_coeff = 0.05;
  check_differences(config);
}

TEST(Gradient, EqualsFiniteDifferencesForOtherScoresGroupsAndLosses) {
  for (const auto score : {config::ScoreFunction::Sigmoid, config::ScoreFunction::SqrtSoftplus}) {
    config::Config config = small_config();
    config.model.moe_router_score_function = score;
    config.model.moe_router_num_groups = 4;
    config.model.moe_router_group_topk = 2;
    config.model.moe_router_topk_scaling_factor = 2.5;
    config.model.moe_router_enable_expert_bias = true;
    config.model.moe_router_load_balancing_type = {config::LoadBalancing::SeqAuxLoss,
                                                   config::LoadBalancing::AuxLoss};
    config.model.moe_aux_loss_coeff = {0.3, 0.2};
    config.model.moe_input_jitter_eps = 0.1;
    config.train.micro_batch_size = 2;
    check_differences(config);
  }
}

TEST(Gradient, EqualsFiniteDifferencesForSharedExperts) {
  for (const bool gate : {false, true}) {
    config::Config config = small_config();
    config.model.moe_shared_expert_intermediate_size = 20;
    config.model.moe_shared_expert_gate = gate;
    // All experts, so that no token changes experts within a difference.
    config.model.moe_router_topk = 8;
    check_differences(config);
  }
}

TEST(Gradient, EqualsFiniteDifferencesForTiedEmbeddingsAndProjectionNorm) {
  config::Config config = small_config();
  config.model.share_embeddings_and_output_weights = true;
  config.model.qk_layernorm = config::QkNorm::Projection;
  config.model.moe_router_pre_softmax = true;
  check_differences(config);
}

TEST(Gradient, EqualsFiniteDifferencesForLatentAttention) {
  for (const bool compressed : {true, false}) {
    config::Config config = latent_config();
    if (!compressed) config.model.q_lora_rank = std::nullopt;
    check_differences(config);
  }
}

TEST(Gradient, EqualsFiniteDifferencesForStretchedPositions) {
  config::Config config = latent_config();
  config.model.rope_type = config::RopeType::Yarn;
  config.model.rotary_scaling_factor = 4;
  config.model.original_max_position_embeddings = 8;
  config.model.mscale = 0.7;
  config.model.mscale_all_dim = 1.5;
  config.model.rotary_interleaved = false;
  check_differences(config);
}

}  // namespace gradient_test
}  // namespace weft::train
