#include "weft/measure/runs/tuner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/train/train_support.h"
#include "weft/base/error.h"
#include "weft/measure/bench/tune_bench.h"
#include "weft/plan/tuning/tuning_grid.h"

namespace weft::measure {
namespace tuner_test {

namespace fs = std::filesystem;
using plan::MoveKind;
using plan::TuningMove;

constexpr const char* kOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";

class Tuner : public ::testing::Test {
 protected:
  Tuner() : folder_(fs::path(::testing::TempDir()) / fmt::format("weft_tune_{}", ::getpid())) {
    fs::create_directories(folder_);
    config_ = train::with_layout(train::small_config(), {.world = 2, .ep = 2});
  }
  ~Tuner() override { fs::remove_all(folder_); }

  TuneRequest request(std::vector<TuningMove> moves) const {
    return {.config = config_,
            .moves = std::move(moves),
            .steps = 6,
            .repeats = 1,
            .folder = folder_};
  }

  const fs::path folder_;
  config::Config config_;
};

TEST_F(Tuner, EveryChangeEndsOnceAndTheBestIsWhatWasKept) {
  const Tuning tuning = tune(request({
      {.sets = {{kOverlap, "true"}}, .kind = MoveKind::Order},
      {.sets = {{kOverlap, "false"}}, .kind = MoveKind::Order},  // unchanged
      {.sets = {{"model.moe_token_dispatcher_type", "allgather"}}},
      {.sets = {{"model.expert_model_parallel_size", "3"}}},  // refused
  }));
  ASSERT_GE(tuning.trials.size(), 3u);
  EXPECT_GT(tuning.first_ms, 0);
  EXPECT_GT(tuning.best_ms, 0);
  config::Config expected = config_;
  int refused = 0;
  for (const Trial& trial : tuning.trials) {
    refused += trial.end == TrialEnd::Refused ? 1 : 0;
    if (trial.end == TrialEnd::Refused || trial.end == TrialEnd::NotTried) {
      EXPECT_FALSE(trial.why.empty());
      continue;
    }
    EXPECT_GT(*trial.predicted_ms, 0);
    const bool faster = trial.times.before_ms - trial.times.after_ms > trial.times.noise_ms;
    EXPECT_EQ(trial.end, faster ? TrialEnd::Kept : TrialEnd::Reverted);
    if (faster) expected = plan::with_move(expected, trial.move);
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(expected.model.moe_token_dispatcher_type,
            tuning.config.model.moe_token_dispatcher_type);
  EXPECT_EQ(expected.comm_overlap.overlap_moe_expert_parallel_comm,
            tuning.config.comm_overlap.overlap_moe_expert_parallel_comm);
  EXPECT_FALSE(tuning.costs.ranks().empty());
}

TEST_F(Tuner, OrdersArePricedByWhatWasMeasured) {
  // Links so slow that only hiding them counts: the model must see it.
  config_.fabric.intra_node_gb_per_second = 0.01;
  TuneRequest asked = request({{.sets = {{kOverlap, "true"}}, .kind = MoveKind::Order}});
  asked.most_trials = 1;
  const Tuning tuning = tune(asked);
  ASSERT_FALSE(tuning.trials.empty());
  EXPECT_LT(*tuning.trials.front().predicted_ms, 1.1 * tuning.first_ms);
}

// Communication as long as compute, with half as many bytes: a rank's compute stays.
TEST_F(Tuner, NoPredictionIsBelowWhatARankComputes) {
  config_.fabric.intra_node_gb_per_second = 0.01;
  TuneRequest asked = request({{.sets = {{"model.moe_token_dispatcher_type", "flex"},
                                         {"model.moe_flex_dispatcher_backend", "deepep"}}}});
  asked.most_trials = 1;
  const Tuning tuning = tune(asked);
  double compute_ms = 0;  // at least, for one micro-batch
  for (const auto& [node, cost] : tuning.costs.ranks().begin()->second) {
    if (cost.kind != trace::SpanKind::Communication) compute_ms += cost.seconds * 1e3;
  }
  ASSERT_FALSE(tuning.trials.empty());
  EXPECT_GT(*tuning.trials.front().predicted_ms, compute_ms);
}

// Steps with these times in turn, for any setting.
std::vector<double> around(double ms, double spread) { return {ms - spread, ms, ms + spread}; }

// Tuning loop with given times: the first setting takes `before`, with overlap `after`. Only the
// trace is run.
class GivenTimes : public Tuner {
 protected:
  GivenTimes() { config_.fabric.intra_node_gb_per_second = 0.01; }

  TuneRequest timed(std::vector<double> before, std::vector<double> after) {
    TuneRequest asked = request({{.sets = {{kOverlap, "true"}}, .kind = MoveKind::Order}});
    asked.steps_of_run = [=](const TimedRunRequest& run) {
      return run.config.comm_overlap.overlap_moe_expert_parallel_comm ? after : before;
    };
    return asked;
  }
};

TEST_F(GivenTimes, AGainBelowTheNoiseIsReverted) {
  const Tuning tuning = tune(timed(around(1000, 50), around(990, 50)));
  ASSERT_EQ(tuning.trials.size(), 1u);
  EXPECT_EQ(tuning.trials[0].end, TrialEnd::Reverted);
  EXPECT_FALSE(tuning.config.comm_overlap.overlap_moe_expert_parallel_comm);
  EXPECT_FALSE(tuning.whole);
}

TEST_F(GivenTimes, AfterARevertedChangeTheBestIsTheSettingSoFar) {
  const Tuning tuning = tune(timed(around(1000, 50), around(990, 50)));
  EXPECT_DOUBLE_EQ(tuning.best_ms, 1000);
  const Tuning slower = tune(timed(around(1000, 5), around(1400, 5)));
  EXPECT_DOUBLE_EQ(slower.best_ms, 1000);
}

TEST_F(GivenTimes, AGainAboveTheNoiseIsKeptWithItsOwnTwoMedians) {
  const Tuning tuning = tune(timed(around(1000, 5), around(800, 5)));
  ASSERT_EQ(tuning.trials.size(), 1u);
  EXPECT_EQ(tuning.trials[0].end, TrialEnd::Kept);
  EXPECT_DOUBLE_EQ(tuning.best_ms, 800);
  ASSERT_TRUE(tuning.whole);
  EXPECT_DOUBLE_EQ(tuning.whole->before_ms, 1000);
  EXPECT_DOUBLE_EQ(tuning.whole->gain(), 1.25);
  EXPECT_FALSE(tuning.whole->is_too_noisy());
  EXPECT_EQ(tuning.end, TuningEnd::NothingLeft);
  EXPECT_TRUE(tuning.untried.empty());
}

// The product of two factors is not a measured time: the ends are measured in turn.
TEST_F(GivenTimes, AfterSeveralKeptChangesTheFirstAndTheLastAreMeasuredInTurn) {
  TuneRequest asked = timed({}, {});
  asked.moves.push_back({.sets = {{"train.micro_batch_size", "2"}}});
  int runs = 0;
  asked.steps_of_run = [&](const TimedRunRequest& run) {
    // The machine slows down from run to run, by 100 ms.
    const double slower = 100.0 * ++runs;
    const bool merges = run.config.comm_overlap.overlap_moe_expert_parallel_comm;
    const double saved = (merges ? 2000 : 0) + (run.config.train.micro_batch_size == 2 ? 1000 : 0);
    return around(9000 + slower - saved, 5);
  };
  const Tuning tuning = tune(asked);
  const auto kept = std::ranges::count(tuning.trials, TrialEnd::Kept, &Trial::end);
  ASSERT_EQ(kept, 2);
  ASSERT_TRUE(tuning.whole);
  EXPECT_DOUBLE_EQ(tuning.whole->before_ms, 9000 + 100.0 * (runs - 1));
  EXPECT_DOUBLE_EQ(tuning.whole->after_ms, 6000 + 100.0 * runs);
}

TEST_F(Tuner, WhatEndsEarlySaysWhatWasNotTried) {
  const std::vector<TuningMove> moves{
      {.sets = {{kOverlap, "true"}}, .kind = MoveKind::Order},
      {.sets = {{"model.moe_token_dispatcher_type", "allgather"}}},
      {.sets = {{kOverlap, "false"}}, .kind = MoveKind::Order}};  // unchanged: no trial
  std::atomic<bool> stop = false;
  TuneRequest asked = request(moves);
  asked.stop = &stop;
  asked.progress = [&](const std::string& what, std::int64_t) {
    if (what.find('=') != std::string::npos) stop = true;  // during the first change
  };
  const Tuning stopped = tune(asked);
  EXPECT_TRUE(stopped.is_interrupted());
  EXPECT_GT(stopped.first_ms, 0);
  EXPECT_FALSE(stopped.untried.empty()) << "the one under way, at least";

  TuneRequest few = request({{.sets = {{kOverlap, "true"}}, .kind = MoveKind::Order},
                             {.sets = {{"train.micro_batch_size", "2"}}}});
  few.most_trials = 1;
  const Tuning ended = tune(few);
  EXPECT_EQ(ended.end, TuningEnd::MostTrials);
  ASSERT_EQ(ended.untried.size(), 1u);
}

TEST_F(Tuner, MovesAreThoseOfTheRun) {
  const auto has = [](const config::Config& config, const std::string& part) {
    return std::ranges::any_of(plan::tuning_moves(config), [&](const TuningMove& move) {
      return plan::to_text(move).find(part) != std::string::npos;
    });
  };
  EXPECT_TRUE(has(config_, kOverlap));
  EXPECT_FALSE(has(config_, "tp_comm_overlap"));
  EXPECT_FALSE(has(train::small_config(), kOverlap));
  EXPECT_TRUE(has(train::small_config(), "micro_batch_size=2"));
  EXPECT_FALSE(has(config_, "pipeline_schedule"));
}

TEST_F(Tuner, TheGridHasEachRunOnce) {
  const auto reduce = [](const char* value) {
    return TuningMove{
        .sets = {{"comm_overlap.overlap_grad_reduce", value}, {"ddp.overlap_grad_reduce", value}}};
  };
  const TuningMove wider{.sets = {{"train.micro_batch_size", "2"}}};
  // An unset key means off here.
  EXPECT_EQ(plan::tuning_grid(config_, {reduce("false")}).size(), 1u);
  EXPECT_EQ(plan::tuning_grid(config_, {reduce("false"), reduce("true")}).size(), 2u);
  EXPECT_EQ(plan::tuning_grid(config_, {reduce("true"), wider}).size(), 4u);
}

TEST_F(Tuner, ABenchThatIsStoppedKeepsWhatItMeasured) {
  std::atomic<bool> stop = false;
  TuneBenchRequest asked{.tune = request({{.sets = {{kOverlap, "true"}}, .kind = MoveKind::Order},
                                          {.sets = {{"train.micro_batch_size", "2"}}}}),
                         .progress =
                             [&](Heat heat, const std::string&, int done, int of) {
                               EXPECT_EQ(heat, Heat::Every);
                               EXPECT_EQ(of, 4);
                               if (done == 1) stop = true;  // during its one step
                             },
                         .log = {}};
  asked.tune.stop = &stop;
  const TuneBench bench = bench_tune(asked);
  EXPECT_TRUE(bench.interrupted);
  EXPECT_FALSE(bench.tuning.trials.empty());
  EXPECT_EQ(bench.grid, 4u);
  ASSERT_EQ(bench.settings.size(), 2u);
  EXPECT_LE(bench.settings[0].ms(), bench.settings[1].ms());
  EXPECT_EQ(bench.settings[0].heat(), Heat::Every);
}

TEST_F(Tuner, AKeyThatIsNoneIsRefused) {
  EXPECT_THROW(plan::with_move(config_, {.sets = {{"model.no", "1"}}}), base::ConfigError);
  EXPECT_THROW(plan::with_move(config_, {.sets = {{kOverlap, "perhaps"}}}), base::ConfigError);
}

}  // namespace tuner_test
}  // namespace weft::measure
