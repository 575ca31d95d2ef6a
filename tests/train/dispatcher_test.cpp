// Dispatchers, token slices and row budgets in training: each reproduces the golden model, and a
// layout's bits do not depend on the order.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/sanitized.h"
#include "tests/train/train_support.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/measure/bench/reference_check.h"
#include "weft/schedule/plan.h"

namespace weft::train {
namespace dispatcher_test {

using config::Dispatcher;
using config::FlexBackend;

struct Sending {
  std::string name;
  Dispatcher type = Dispatcher::AllToAll;
  std::optional<FlexBackend> backend = {};
  std::int64_t per_machine = 0;  // at most; 0: not given
};

const std::vector<Sending>& sendings() {
  static const std::vector<Sending> all{
      {"AllToAll"},
      {"AllGather", Dispatcher::AllGather},
      {"DeepEp", Dispatcher::Flex, FlexBackend::DeepEp},
      {"HybridEp", Dispatcher::Flex, FlexBackend::HybridEp, 2},
      {"HybridEpOneMachine", Dispatcher::Flex, FlexBackend::HybridEp, 16},
  };
  return all;
}

config::Config with_sending(config::Config config, const Sending& sending) {
  config.model.moe_token_dispatcher_type = sending.type;
  config.model.moe_flex_dispatcher_backend = sending.backend;
  if (sending.per_machine > 0) {
    config.runtime.ranks_per_node = std::min(sending.per_machine, *config.runtime.world_size);
  }
  return config;
}

class EverySending : public ::testing::TestWithParam<Sending> {};

INSTANTIATE_TEST_SUITE_P(Dispatchers,
                         EverySending,
                         ::testing::ValuesIn(sendings()),
                         [](const auto& of) { return of.param.name; });

TEST_P(EverySending, ComputesTheGoldenDeepSeekModelOnOneTwoAndFourRanks) {
  const std::string folder = std::string(WEFT_SOURCE_DIR) + "/tests/golden/deepseek_v3_tiny";
  const checkpoint::HuggingFaceModel model(folder);
  const checkpoint::ReferenceRun reference(folder, model.huggingface_config());
  for (const int ranks : {1, 2, 4}) {
    if (kSanitized && ranks != 2) continue;
    // One rank sends nothing; two send as four do.
    if (!soaks() && ranks != 4 && GetParam().type != Dispatcher::AllToAll) continue;
    const config::Config wanted =
        with_sending(with_layout(config::Config(), {.world = ranks, .ep = ranks}), GetParam());
    for (const measure::Check& check :
         measure::check_reference(judged(measure::reference_config(wanted, model, reference)),
                                  model,
                                  reference,
                                  {})) {
      EXPECT_TRUE(check.pass()) << ranks << " ranks, " << check.name << ": " << check.error;
    }
  }
}

config::Config layout_of_four() {
  config::Config config = with_layout(small_config(), {.world = 4, .ep = 4});
  config.train.global_batch_size = 16;
  config.model.moe_aux_loss_coeff = {0.01};
  return config;
}

// Both send a token once per machine and forward it there.
TEST(Dispatchers, DeepEpBetweenMachinesHasTheBitsOfHybridEp) {
  const auto trained = [](FlexBackend backend) {
    return train_some(
        with_sending(layout_of_four(), {"two machines", Dispatcher::Flex, backend, 2}),
        2);
  };
  expect_same_bits(trained(FlexBackend::HybridEp), trained(FlexBackend::DeepEp));
}

struct Order {
  const char* name;
  bool overlap = false, delay = false, experts_wgrad = false;
};

constexpr Order kOrders[] = {
    {.name = "overlap", .overlap = true},
    {.name = "overlap and delay", .overlap = true, .delay = true},
    {.name = "experts' weight gradients under dispatch", .experts_wgrad = true},
};

config::Config with_order(config::Config config, const Order& order) {
  config.comm_overlap.overlap_moe_expert_parallel_comm = order.overlap;
  config.comm_overlap.delay_wgrad_compute = order.delay;
  config.model.overlap_dispatch_backward_with_experts_wgrad = order.experts_wgrad;
  return config;
}

TEST_P(EverySending, HasTheSameBitsInEveryOrderAndWithEveryDelay) {
  for (const int slices : {1, 3}) {
    config::Config plain = with_sending(layout_of_four(), GetParam());
    plain.comm_overlap.moe_token_slices = slices;
    constexpr int kSteps = 3;  // memory is planned after the first and the second step
    const Outcome expected = train_some(plain, kSteps);
    for (const Order& order : kOrders) {
      if (!soaks() && (slices == 1) != order.delay) continue;  // every order once
      SCOPED_TRACE(base::text("{}, {} slices", order.name, slices));
      config::Config config = with_order(plain, order);
      if (slices == 1 || order.delay) {
        config.fabric.jitter_us = 300;
        config.fabric.seed = slices;
      }
      expect_same_bits(expected, train_some(config, kSteps));
    }
  }
}

TEST_P(EverySending, HasTheSameBitsInEveryOrderOfAPipeline) {
  config::Config plain =
      with_sending(with_layout(deep_config(), {.world = 8, .ep = 4, .pp = 2, .vpp = 2}),
                   GetParam());
  plain.train.global_batch_size = 16;
  for (std::int64_t slices = 2; slices >= few_or_many(2, 1); --slices) {
    plain.comm_overlap.moe_token_slices = slices;
    const Outcome expected = train_some(plain, 3);
    for (const Order& order : kOrders) {
      // All orders under the reference's dispatcher, the one with most overlap under all.
      if (!soaks() && GetParam().type != Dispatcher::AllToAll && !order.delay) continue;
      SCOPED_TRACE(base::text("{}, {} slices", order.name, slices));
      expect_same_bits(expected, train_some(with_order(plain, order), 3));
    }
  }
}

// In fp32 no value is rounded between a token's rows and the residual stream.
TEST_P(EverySending, HasTheSameBitsWhereRowsAreMergedInOnePass) {
  config::Config config = with_sending(layout_of_four(), GetParam());
  for (int slices = 3; slices >= few_or_many(3, 1); slices -= 2) {
    config.comm_overlap.moe_token_slices = slices;
    config.model.moe_permute_fusion = false;
    const Outcome expected = train_some(config, 3);
    config.model.moe_permute_fusion = true;
    expect_same_bits(expected, train_some(config, 3));
  }
}

double largest_relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(b[i]));
  }
  return largest;
}

TEST_P(EverySending, TrainsAsOneRankDoesHoweverTokensAreSliced) {
  config::Config alone = layout_of_four();
  alone.runtime.world_size = 1;
  alone.model.expert_model_parallel_size = 1;
  const Outcome& expected = trained_once(alone, 3);
  for (const int slices : {1, 2, 5}) {
    if (!soaks() && slices == 2) continue;
    config::Config config = with_sending(layout_of_four(), GetParam());
    config.comm_overlap.moe_token_slices = slices;
    const Outcome got = train_some(config, 3);
    EXPECT_LE(largest_relative_difference(got.losses, expected.losses), 1e-6) << slices;
    EXPECT_LE(largest_relative_difference(got.gradient_norms, expected.gradient_norms), 1e-5);
  }
}

TEST_P(EverySending, DropsAndPadsToTheLossOfDroppingAlone) {
  if (GetParam().backend == FlexBackend::DeepEp) return;  // does not pad, and is refused
  config::Config config = with_sending(layout_of_four(), GetParam());
  config.model.moe_expert_capacity_factor = 1;
  for (const config::DropPolicy policy :
       {config::DropPolicy::Probs, config::DropPolicy::Position}) {
    config.model.moe_token_drop_policy = policy;
    config.model.moe_pad_expert_input_to_capacity = false;
    const Outcome dropped = train_some(config, 3);
    config.model.moe_pad_expert_input_to_capacity = true;
    const Outcome padded = train_some(config, 3);
    EXPECT_LE(largest_relative_difference(padded.losses, dropped.losses), 1e-6);
    EXPECT_LE(largest_relative_difference(padded.gradient_norms, dropped.gradient_norms), 1e-5);
  }
}

// One copy of a token per rank with its experts, although there is room for k.
TEST(FlexDispatcher, TheBackwardCopiesOnlyRowsThatAreSent) {
  on_ranks(with_sending(layout_of_four(), sendings()[2]), [](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    Program& program = engine.program();
    program.begin({.batch = batch});
    std::int64_t room = 0, sent = 0, copied = 0;
    engine.training().run(
        [&](const schedule::Node& node, tensor::Stream& stream) {
          program.run(node, stream);
          if (node.piece != schedule::Piece::Merge || node.direction != schedule::Direction::D) {
            return;
          }
          const auto layer = static_cast<std::size_t>(node.layer);
          const model::DispatchState& state =
              program.state(node.micro_batch).layers[layer].slices[0].dispatch;
          room += state.across.token_R.dim(0);
          copied += state.dreturned_RD.dim(0);
          for (const std::int64_t rows : state.across.send_rows) sent += rows;
        },
        exec::Tracing::Off);
    EXPECT_EQ(copied, sent);
    EXPECT_LT(sent, room);
  });
}

bool has(const schedule::Graph& graph, schedule::Piece piece) {
  return std::ranges::any_of(graph.entries, [&](const schedule::Entry& entry) {
    return entry.node.piece == piece;
  });
}

TEST(RowCounts, TheHostWaitsForNoneThatItNeedNotKnow) {
  const auto pieces = [](const config::Config& config) {
    const grid::Grid grid(derive::layout_of(config));
    const schedule::Graph graph = schedule::plan_step(config, grid).front().training;
    return std::pair{has(graph, schedule::Piece::Counts), has(graph, schedule::Piece::Sizes)};
  };
  config::Config config = layout_of_four();
  EXPECT_EQ(pieces(config), std::pair(true, true));
  config.model.moe_expert_capacity_factor = 1;
  config.model.moe_pad_expert_input_to_capacity = true;
  EXPECT_EQ(pieces(config), std::pair(false, false));
  config = with_sending(layout_of_four(), sendings()[3]);
  config.model.moe_expert_rank_capacity_factor = 2;
  EXPECT_EQ(pieces(config), std::pair(true, false));
}

// Runs steps, and counts repeated ones.
TakeStep counting_repeated(std::atomic<std::int64_t>& repeated) {
  return [&](Engine& engine, const StepInput& input) {
    const StepTotals totals = train_step(engine, input, exec::Tracing::Off);
    if (engine.rank() == 0) repeated += totals.repeated;
    return totals;
  };
}

TEST(RowBudget, AStepThatExceedsItRunsAgainWithTheBitsOfARunWithoutOne) {
  for (const LayoutCase& layout :
       {LayoutCase{.world = 4, .ep = 4}, LayoutCase{.world = 8, .ep = 4, .pp = 2}}) {
    config::Config free = with_sending(with_layout(deep_config(), layout), sendings()[3]);
    free.train.global_batch_size = 16;
    free.model.share_embeddings_and_output_weights = true;
    free.model.moe_router_enable_expert_bias = true;
    free.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
    free.model.moe_router_load_balancing_type = {config::LoadBalancing::GlobalAuxLoss};
    free.model.moe_aux_loss_coeff = {0.01};
    constexpr int kSteps = 3;
    const Outcome expected = train_some(free, kSteps);
    for (const bool overlap : {false, true}) {
      for (const double factor : {1.05, 4.0}) {
        config::Config config = free;
        config.comm_overlap.overlap_moe_expert_parallel_comm = overlap;
        config.model.moe_expert_rank_capacity_factor = factor;
        // Each factor meets one of both orders under each layout.
        const bool is_exceeded = factor == 1.05, has_stages = layout.pp > 1;
        if (!soaks() && (overlap == is_exceeded) == has_stages) continue;
        SCOPED_TRACE(base::text("pp {}, overlap {}, factor {}", layout.pp, overlap, factor));
        std::atomic<std::int64_t> repeated = 0;
        expect_same_bits(
            expected,
            train_some(config, kSteps, {}, devices::DeviceKind::Cpu, counting_repeated(repeated)));
        const auto taken = std::ssize(expected.losses);
        EXPECT_EQ(repeated, factor == 1.05 ? taken : 0);
      }
    }
  }
}

TEST(RowBudget, AnEvaluationHasTheLossOfOneWithoutIt) {
  config::Config config = with_sending(layout_of_four(), sendings()[3]);
  const auto loss_of = [](const config::Config& of) {
    std::atomic<double> loss = 0;
    on_ranks(of, [&](Engine& engine) {
      const StepTotals totals = forward_step(engine, batch_of(engine, 0));
      if (engine.rank() == 0) loss = totals.loss;
    });
    return loss.load();
  };
  const double expected = loss_of(config);
  config.model.moe_expert_rank_capacity_factor = 1.01;
  EXPECT_EQ(loss_of(config), expected);
}

}  // namespace dispatcher_test
}  // namespace weft::train
