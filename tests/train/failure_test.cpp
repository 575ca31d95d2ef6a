// Failing runs name the place of the failure.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/train/train_support.h"
#include "weft/base/error.h"
#include "weft/train/guard/diagnose.h"

namespace weft::train {
namespace failure_test {

// Runs on the test's device.
class OnADevice : public testing::TestWithParam<devices::DeviceKind> {
 protected:
  static void on_ranks(const config::Config& config, const std::function<void(Engine&)>& body) {
    train::on_ranks(config, body, {}, GetParam());
  }
};

class NotFiniteStep : public OnADevice {
 protected:
  // Finding about the first step that is not finite, after `spoil`.
  static std::string finding(const config::Config& config,
                             const std::function<void(Engine&)>& spoil) {
    std::string text;
    on_ranks(config, [&](Engine& engine) {
      const Batch batch = batch_of(engine, 0);
      spoil(engine);
      for (std::int64_t step = 0; step < 100; ++step) {
        const StepInput input{.batch = batch, .step = step};
        const StepTotals totals = train_step(engine, input, exec::Tracing::Off);
        if (is_finite(totals)) continue;
        const NotFinite found = find_not_finite(engine, input, totals);
        if (engine.rank() == 0) {
          text = fmt::format("on rank {} step {} {}{}",
                             found.rank,
                             step,
                             totals.repeated ? "repeated " : "",
                             found.what);
        }
        return;
      }
    });
    return text;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices,
                         NotFiniteStep,
                         testing::ValuesIn(devices::all_devices()),
                         [](const auto& test) { return devices::name_of(test.param); });

TEST_P(NotFiniteStep, AWeightIsNamedWithItsRankAndLayer) {
  const std::string text =
      finding(with_layout(small_config(), {.world = 2, .ep = 2}), [](Engine& engine) {
        if (engine.rank() != 1) return;
        set(engine,
            engine.parameters().find("layers.2.experts.fc1.weight").weight,
            5,
            std::numeric_limits<float>::quiet_NaN());
      });
  EXPECT_NE(text.find(": the weights of layers.2.experts.fc1.weight are not finite"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.starts_with("on rank 1 ")) << text;
}

TEST_P(NotFiniteStep, TheFirstNodeThatOverflowsIsNamed) {
  const std::string text = finding(small_config(), [](Engine& engine) {
    const tensor::Tensor& weight = engine.parameters().find("layers.1.mlp.fc2.weight").weight;
    fill(engine, weight, std::numeric_limits<float>::max());
  });
  EXPECT_NE(text.find(": the output of 1F0.mlp (layer 1) is not finite"), std::string::npos)
      << text;
}

// Overflow that occurs in a product only: no single value is too large.
void spoil_expert(Engine& engine, std::int64_t expert) {
  const tensor::Tensor& weight = engine.parameters().find("layers.2.experts.fc2.weight").weight;
  const std::int64_t each = weight.elements() / weight.dim(0);
  fill(engine, weight.range(expert * each, {each}), std::numeric_limits<float>::max());
}

// Forced routing differs in every step: the overflowing expert has rows in some steps only.
TEST_P(NotFiniteStep, TheStepThatFailedIsTheOneLookedAt) {
  config::Config config = small_config();
  config.train.global_batch_size = 1;
  config.model.seq_length = 3;
  config.model.moe_router_force_load_balancing = true;
  const std::string text = finding(config, [](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    forward_step(engine, batch);
    const tensor::Tensor chosen = engine.program().state(0).layers[2].route.experts_Tk;
    const std::vector<std::int32_t> experts = integers_of(engine, chosen);
    std::int64_t unused = 0;
    while (std::ranges::find(experts, unused) != experts.end()) ++unused;
    engine.program().drop_states();
    spoil_expert(engine, unused);
  });
  EXPECT_FALSE(text.starts_with("on rank 0 step 0 ")) << text;
  EXPECT_NE(text.find(": the output of 2F0.experts (layer 2) is not finite"), std::string::npos)
      << text;
}

TEST_P(NotFiniteStep, AStepThatRanWithoutItsBudgetIsLookedAtWithoutIt) {
  config::Config config = with_layout(small_config(), {.world = 4, .ep = 4});
  config.model.moe_token_dispatcher_type = config::Dispatcher::Flex;
  config.model.moe_flex_dispatcher_backend = config::FlexBackend::HybridEp;
  config.runtime.ranks_per_node = 2;
  config.model.moe_expert_rank_capacity_factor = 1.01;
  const std::string text = finding(config, [](Engine& engine) {
    for (const std::int64_t expert : {0, 1}) spoil_expert(engine, expert);
  });
  EXPECT_NE(text.find(" repeated "), std::string::npos) << text;
  EXPECT_NE(text.find(": the output of 2F0.experts (layer 2) is not finite"), std::string::npos)
      << text;
}

TEST_P(NotFiniteStep, AStepThatIsNotFiniteChangesNoWeight) {
  on_ranks(small_config(), [](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    const std::vector<float> before =
        floats_of(engine, engine.parameters().find("head.weight").weight);
    set(engine,
        engine.parameters().find("layers.0.attention.norm.weight").weight,
        0,
        std::numeric_limits<float>::infinity());
    train_step(engine, {.batch = batch, .learning_rate = 1}, exec::Tracing::Off);
    EXPECT_EQ(before, floats_of(engine, engine.parameters().find("head.weight").weight));
  });
}

TEST_P(NotFiniteStep, WhereTheRunGoesOnTheNextStepIsFinite) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.rerun_state_machine.check_for_nan_in_loss = false;
  on_ranks(config, [](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    const tensor::Tensor& weight =
        engine.parameters().find("layers.0.attention.norm.weight").weight;
    const float before = floats_of(engine, weight).front();
    set(engine, weight, 0, std::numeric_limits<float>::infinity());
    EXPECT_FALSE(
        is_finite(train_step(engine, {.batch = batch, .learning_rate = 0.1}, exec::Tracing::Off)));
    set(engine, weight, 0, before);
    EXPECT_TRUE(is_finite(
        train_step(engine, {.batch = batch, .step = 1, .learning_rate = 0.1}, exec::Tracing::Off)));
  });
}

class Failure : public OnADevice {
 protected:
  // Error of a run in which `rank` fails at `node`, in the middle of a step.
  static std::string failure_at(const config::Config& config,
                                int rank,
                                const std::string& node_name) {
    try {
      on_ranks(config, [&](Engine& engine) {
        const Batch batch = batch_of(engine, 0);
        Program& program = engine.program();
        program.begin({.batch = batch});
        engine.training().run(
            [&](const schedule::Node& node, tensor::Stream& stream) {
              if (engine.rank() == rank && schedule::print(node) == node_name) {
                stream.enqueue_host("spoil", tensor::WorkClass::Gemm, [](tensor::Transfers&) {
                  throw base::SystemError("out of luck");
                });
              }
              program.run(node, stream);
            },
            exec::Tracing::Off);
      });
    } catch (const base::SystemError& error) {
      return error.what();
    }
    return "the run did not end with an error";
  }
};

INSTANTIATE_TEST_SUITE_P(Devices,
                         Failure,
                         testing::ValuesIn(devices::all_devices()),
                         [](const auto& test) { return devices::name_of(test.param); });

TEST_P(Failure, ARankThatThrowsInAStepEndsTheRunWithItsName) {
  const std::string text =
      failure_at(with_layout(small_config(), {.world = 4, .ep = 4}), 2, "2F1.experts");
  EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
  EXPECT_NE(text.find("2F1.experts"), std::string::npos) << text;
  EXPECT_NE(text.find("out of luck"), std::string::npos) << text;
}

TEST_P(Failure, ARankLostInAnOverlappedPipelineEndsTheRunWithItsName) {
  config::Config config = with_layout(deep_config(), {.world = 8, .ep = 2, .pp = 4, .vpp = 2});
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  for (const char* node : {"6F1.experts", "c2D1.receive", "2W0.attention", "c6F3.send"}) {
    const std::string text = failure_at(config, 5, node);
    EXPECT_NE(text.find("rank 5"), std::string::npos) << text;
    EXPECT_NE(text.find(node), std::string::npos) << text;
    EXPECT_NE(text.find("out of luck"), std::string::npos) << text;
  }
}

// Without experts the host waits for no counts in a step: only the streams see the failure.
TEST_P(Failure, ARankLostInADensePipelineEndsTheRunWithItsName) {
  config::Config config = deep_config();
  config.model.num_moe_experts = std::nullopt;
  config.model.moe_ffn_hidden_size = std::nullopt;
  config.model.moe_layer_freq = {1};
  config = with_layout(config, {.world = 4, .pp = 4});
  for (const char* node : {"3F1.mlp", "c1D2.receive", "c1F2.send", "2W0.attention"}) {
    const std::string text = failure_at(config, 1, node);
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_NE(text.find(node), std::string::npos) << text;
    EXPECT_NE(text.find("out of luck"), std::string::npos) << text;
  }
}

}  // namespace failure_test
}  // namespace weft::train
