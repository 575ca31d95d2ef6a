// The pipeline schedule changes no bit, and the placement of stages changes only the ranks that
// hold them.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/train/train_support.h"

namespace weft::train {
namespace pipeline_schedule_test {

using config::PipelineSchedule;

struct ScheduleCase {
  PipelineSchedule schedule = PipelineSchedule::ZeroBubble;
  int pp = 2;
  int micro_batches = 4;
};

std::string name_of(const ScheduleCase& c) {
  return fmt::format("{}Pp{}MicroBatches{}",
                     c.schedule == PipelineSchedule::ZeroBubble ? "ZeroBubble" : "DualPipeV",
                     c.pp,
                     c.micro_batches);
}

config::Config one_rank(int micro_batches) {
  config::Config config = deep_config();
  config.train.global_batch_size = config.train.micro_batch_size * micro_batches;
  config.model.share_embeddings_and_output_weights = true;
  return config;
}

config::Config config_of(const ScheduleCase& c, int ep = 1) {
  config::Config config = one_rank(c.micro_batches * ep);
  const bool two = c.schedule == PipelineSchedule::DualPipeV;
  config = with_layout(config, {.world = c.pp * ep, .ep = ep, .pp = c.pp, .vpp = two ? 2 : 1});
  config.runtime.pipeline_schedule = c.schedule;
  return config;
}

// Ring with one chunk per rank: 1F1B.
config::Config plain_of(config::Config config) {
  config.model.virtual_pipeline_model_parallel_size = 1;
  config.runtime.pipeline_schedule = PipelineSchedule::Auto;
  config.comm_overlap.overlap_moe_expert_parallel_comm = false;
  config.comm_overlap.delay_wgrad_compute = false;
  return config;
}

// As expect_same_bits, without the gradient norm: its sums go by rank, and ranks hold other layers.
void expect_same_training(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.losses, b.losses);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (const auto& [name, values] : a.weights) EXPECT_TRUE(values == b.weights.at(name)) << name;
}

class Schedules : public ::testing::TestWithParam<ScheduleCase> {};

TEST_P(Schedules, TrainTheBitsOf1F1B) {
  // Without clipping: the norm's last bit depends on the placement.
  config::Config config = config_of(GetParam());
  config.optimizer.clip_grad = 0;
  expect_same_training(train_some(config, 3), train_some(plain_of(config), 3));
}

TEST_P(Schedules, TrainLikeOneRank) {
  const Outcome one = train_some(one_rank(GetParam().micro_batches), 3);
  const Outcome many = train_some(config_of(GetParam()), 3);
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(many.losses[i], one.losses[i], 2e-6 * one.losses[i]) << "step " << i;
    EXPECT_NEAR(many.gradient_norms[i], one.gradient_norms[i], 2e-5 * one.gradient_norms[i]);
  }
  for (const auto& [name, values] : one.weights) {
    EXPECT_LT(largest_difference(many.weights.at(name), values), 2e-3) << name;
  }
}

TEST_P(Schedules, NeverStandStillUnderRandomDelays) {
  config::Config config = config_of(GetParam(), 2);
  config.optimizer.clip_grad = 0;
  const Outcome expected = train_some(plain_of(config), 2);
  config.fabric.jitter_us = 300;
  config.fabric.seed = 1;
  expect_same_training(train_some(config, 2), expected);
  if (GetParam().schedule != PipelineSchedule::DualPipeV) return;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  expect_same_training(train_some(config, 2), expected);
  config.comm_overlap.delay_wgrad_compute = true;
  config.model.overlap_p2p_comm_warmup_flush = true;
  expect_same_training(train_some(config, 2), expected);
}

INSTANTIATE_TEST_SUITE_P(All,
                         Schedules,
                         ::testing::Values(ScheduleCase{.pp = 2, .micro_batches = 1},
                                           ScheduleCase{.pp = 2, .micro_batches = 5},
                                           ScheduleCase{.pp = 4, .micro_batches = 3},
                                           ScheduleCase{.pp = 4, .micro_batches = 8},
                                           ScheduleCase{PipelineSchedule::DualPipeV, 2, 1},
                                           ScheduleCase{PipelineSchedule::DualPipeV, 2, 5},
                                           ScheduleCase{PipelineSchedule::DualPipeV, 4, 3},
                                           ScheduleCase{PipelineSchedule::DualPipeV, 4, 9}),
                         [](const auto& param_info) { return name_of(param_info.param); });

TEST(PipelineSchedule, DeferredHeadGradientsAndEarlyReceivesChangeNoBit) {
  config::Config config = plain_of(config_of({.pp = 4, .micro_batches = 6}));
  const Outcome expected = train_some(config, 3);
  config.model.gradient_accumulation_fusion = true;
  for (const int limit : {0, 2}) {
    config.comm_overlap.defer_embedding_wgrad_compute = true;
    config.comm_overlap.wgrad_deferral_limit = limit;
    expect_same_bits(expected, train_some(config, 3));
  }
  config.comm_overlap.overlap_p2p_comm = true;
  config.comm_overlap.batch_p2p_comm = false;
  config.model.overlap_p2p_comm_warmup_flush = true;
  expect_same_bits(expected, train_some(config, 3));
}

// Peak kept bytes of a step by rank, as the pool counts them: activations, and rows in flight to
// experts and back.
std::vector<std::size_t> kept_peaks(const config::Config& config) {
  std::vector<std::size_t> peaks(static_cast<std::size_t>(*config.runtime.world_size));
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    engine.pool().reset_peaks();
    train_step(engine, {.batch = batch, .learning_rate = 0}, exec::Tracing::Off);
    peaks[static_cast<std::size_t>(engine.rank())] =
        engine.pool().use(tensor::Tag::Activations).peak +
        engine.pool().use(tensor::Tag::Communication).peak;
  });
  return peaks;
}

struct KeptCase {
  const char* name;
  int ep = 1;
  void (*change)(config::Config&) = [](config::Config&) {};
};

void dense(config::Config& config) {
  config.model.num_moe_experts = std::nullopt;
  config.model.moe_ffn_hidden_size = std::nullopt;
  config.model.ffn_hidden_size = 96;
}

class ZeroBubbleKeeps : public ::testing::TestWithParam<KeptCase> {};

TEST_P(ZeroBubbleKeeps, NoMoreThan1F1B) {
  config::Config config = config_of({.pp = 4, .micro_batches = 8}, GetParam().ep);
  config.model.moe_layer_freq = {1};  // equal stages
  config.model.hidden_size = 64;
  config.model.seq_length = 32;
  config.model.moe_ffn_hidden_size = 48;
  config.model.qk_layernorm = config::QkNorm::None;
  GetParam().change(config);
  config::Config plain = plain_of(config);
  plain.comm_overlap.overlap_p2p_comm = true;
  plain.comm_overlap.batch_p2p_comm = false;
  const std::vector<std::size_t> before = kept_peaks(plain), now = kept_peaks(config);
  EXPECT_LE(*std::ranges::max_element(now), *std::ranges::max_element(before))
      << fmt::format("{} {}", before, now);
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    ZeroBubbleKeeps,
    ::testing::ValuesIn(third_or_all<KeptCase>(
        {KeptCase{"TopTwo"},
         KeptCase{"Dense", 1, dense},
         KeptCase{"DenseBeforeMixture",
                  1,
                  [](config::Config& c) {
                    c.model.moe_layer_freq = {0, 1, 0, 1, 0, 1, 0, 1};
                    c.model.num_layers = 8;
                    c.model.ffn_hidden_size = 96;
                  }},
         KeptCase{"DenseOfOneLayer",
                  1,
                  [](config::Config& c) {
                    dense(c);
                    c.model.num_layers = 4;
                  }},
         KeptCase{"DenseOfFourLayers",
                  1,
                  [](config::Config& c) {
                    dense(c);
                    c.model.num_layers = 16;
                  }},
         KeptCase{"OneExpert",
                  1,
                  [](config::Config& c) {
                    c.model.moe_router_topk = 1;
                    c.model.moe_router_pre_softmax = true;
                  }},
         KeptCase{"Flex",
                  1,
                  [](config::Config& c) {
                    c.model.moe_router_topk = 4;
                    c.model.moe_token_dispatcher_type = config::Dispatcher::Flex;
                    c.model.moe_flex_dispatcher_backend = config::FlexBackend::DeepEp;
                  }},
         KeptCase{"AllGather",
                  1,
                  [](config::Config& c) {
                    c.model.moe_router_topk = 4;
                    c.model.moe_token_dispatcher_type = config::Dispatcher::AllGather;
                  }},
         KeptCase{"TwoRanksOfExperts", 2},
         KeptCase{"TopFourOverTwoRanks", 2, [](config::Config& c) { c.model.moe_router_topk = 4; }},
         KeptCase{"CutExperts",
                  1,
                  [](config::Config& c) {
                    c = with_layout(c, {.world = 8, .tp = 2, .pp = 4, .etp = 2});
                    c.runtime.pipeline_schedule = PipelineSchedule::ZeroBubble;
                  }},
         KeptCase{"Latent",
                  1,
                  [](config::Config& c) {
                    c.model.num_query_groups = std::nullopt;
                    c.model.multi_latent_attention = true;
                    c.model.q_lora_rank = 24;
                    c.model.kv_lora_rank = 20;
                    c.model.qk_head_dim = 12;
                    c.model.qk_pos_emb_head_dim = 8;
                    c.model.v_head_dim = 10;
                  }},
         KeptCase{"TopFour", 1, [](config::Config& c) { c.model.moe_router_topk = 4; }},
         KeptCase{
             "NarrowExperts",
             1,
             [](config::Config& c) {
               c.model.moe_router_topk = 4;
               c.model.moe_ffn_hidden_size = 24;
             }},
         KeptCase{"SharedExpert",
                  1,
                  [](config::Config& c) { c.model.moe_shared_expert_intermediate_size = 32; }},
         KeptCase{"NormsOfHeads",
                  1,
                  [](config::Config& c) { c.model.qk_layernorm = config::QkNorm::Head; }},
         KeptCase{
             "TwoRanksOfTensors",
             1,
             [](config::Config& c) {
               c = with_layout(c, {.world = 8, .ep = 1, .tp = 2, .pp = 4});
               c.runtime.pipeline_schedule = PipelineSchedule::ZeroBubble;
             }}})),
    [](const auto& kept) { return std::string(kept.param.name); });

TEST(PipelineSchedule, AForwardPassOfAVEqualsTheOneRankRuns) {
  const auto totals_of = [](const config::Config& config) {
    StepTotals totals;
    on_ranks(config, [&](Engine& engine) {
      const StepTotals own = forward_step(engine, batch_of(engine, 0));
      for (int m = 0; m < engine.plan().shape.micro_batches; ++m) {
        EXPECT_EQ(engine.program().state(m).head.logits_TV.defined(), engine.groups().self.pp == 0);
      }
      engine.program().drop_states();
      if (engine.rank() == 0) totals = own;
    });
    return totals;
  };
  for (const int micro_batches : {2, 6}) {
    const StepTotals one = totals_of(one_rank(micro_batches));
    const StepTotals many = totals_of(config_of({PipelineSchedule::DualPipeV, 4, micro_batches}));
    EXPECT_NEAR(many.loss, one.loss, 2e-6 * one.loss);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(many.rank_losses[rank].has_value(), rank == 0) << rank;
    }
  }
}

}  // namespace pipeline_schedule_test
}  // namespace weft::train
