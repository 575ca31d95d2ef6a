// An order from files is run as given, or refused before the run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/train/train_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/derive/derived.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/order/improve.h"
#include "weft/schedule/text/plan_files.h"
#include "weft/schedule/text/text.h"

namespace weft::train {
namespace schedule_files_test {

namespace fs = std::filesystem;

std::vector<schedule::RankPlan> plans_of(const config::Config& config) {
  return schedule::plan_step(config, grid::Grid(derive::layout_of(config)));
}

config::Config plain_config() {
  config::Config config = with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 1});
  config.train.global_batch_size = 8;
  return config;
}

class ScheduleFiles : public ::testing::Test {
 protected:
  ScheduleFiles()
      : folder_(fs::path(::testing::TempDir()) / fmt::format("weft_orders_{}", ::getpid())) {}
  ~ScheduleFiles() override { fs::remove_all(folder_); }

  config::Config from_files() const {
    config::Config config = plain_config();
    config.runtime.schedule = folder_.string();
    return config;
  }

  std::string refusal() const {
    try {
      on_ranks(from_files(), [](Engine&) { ADD_FAILURE() << "it runs"; });
    } catch (const base::ConfigError& error) {
      return error.what();
    }
    return "";
  }

  const fs::path folder_;
};

TEST_F(ScheduleFiles, TheOverlappedOrderGivesTheBitsOfItsKnobs) {
  config::Config knobs = plain_config();
  knobs.comm_overlap.overlap_moe_expert_parallel_comm = true;
  knobs.comm_overlap.delay_wgrad_compute = true;
  const std::vector<schedule::RankPlan> plans = plans_of(knobs);
  schedule::write_orders(folder_, plans);
  on_ranks(from_files(), [&](Engine& engine) {
    const auto stage = static_cast<std::size_t>(engine.groups().self.pp);
    EXPECT_EQ(schedule::print(engine.plan().training), schedule::print(plans[stage].training));
  });
  expect_same_bits(train_some(knobs, 3), train_some(from_files(), 3));
}

TEST_F(ScheduleFiles, AnImprovedOrderGivesTheBitsOfThePlainOne) {
  config::Config config = plain_config();
  const std::vector<schedule::RankPlan> plans = plans_of(config);
  const exec::sim::CostTable costs =
      plan::nominal_costs(config,
                          grid::Grid(derive::layout_of(config)),
                          plans,
                          {.link_bytes_per_second = 1e9, .network_bytes_per_second = 1e9});
  const plan::Improvement found =
      plan::improve({.plans = plans,
                     .costs = costs,
                     .load = plan::expected_load(config, plans.front().anatomy.flow),
                     .tries = 100});
  ASSERT_TRUE(found.is_better());
  schedule::write_orders(folder_, found.plans);
  expect_same_bits(train_some(plain_config(), 3), train_some(from_files(), 3));
}

TEST_F(ScheduleFiles, EitherWeightGradientOfGatedSharedExpertsMayBeTheFirst) {
  config::Config config = small_config();
  config.model.moe_shared_expert_intermediate_size = 20;
  config.model.moe_shared_expert_gate = true;
  const Outcome expected = train_some(config, 2);
  schedule::write_orders(folder_, plans_of(config));
  const fs::path file = schedule::file_of(folder_, 0);
  std::string text = base::read_text(file);
  const std::string second = "compute  0W0.shared.fc2\n", first = "compute  0W0.shared.fc1\n";
  const std::size_t from = text.find(second);
  ASSERT_NE(from, std::string::npos) << text;
  text.erase(from, second.size());
  const std::size_t to = text.find(first);
  ASSERT_NE(to, std::string::npos) << text;
  base::write_whole(file, text.insert(to + first.size(), second));
  config.runtime.schedule = folder_.string();
  expect_same_bits(expected, train_some(config, 2));
}

TEST_F(ScheduleFiles, AMissingNodeIsRefused) {
  schedule::write_orders(folder_, plans_of(plain_config()));
  const fs::path file = schedule::file_of(folder_, 0);
  std::string text = base::read_text(file);
  const std::string line = "compute  0W0.route\n";
  const std::size_t at = text.find(line);
  ASSERT_NE(at, std::string::npos) << text;
  base::write_whole(file, text.erase(at, line.size()));
  const std::string refused = refusal();
  EXPECT_NE(refused.find(file.string() + ": 0W0.route is missing"), std::string::npos) << refused;
}

TEST_F(ScheduleFiles, AnOrderOfAnotherStepIsNamedAsThat) {
  schedule::write_orders(folder_, plans_of(plain_config()));
  const fs::path file = schedule::file_of(folder_, 0);
  std::string text = base::read_text(file);
  const std::string line = "compute  0W0.route\n", other = "compute  0R0.route\n";
  base::write_whole(file, text.replace(text.find(line), line.size(), other));
  const std::string refused = refusal();
  EXPECT_NE(refused.find("written for another step: it has 0R0.route, and this run has 0W0.route"),
            std::string::npos)
      << refused;
}

TEST_F(ScheduleFiles, AnOrderOfMoreMicroBatchesOrLayersIsNamedAsThat) {
  config::Config more = plain_config();
  more.train.global_batch_size *= 2;
  schedule::write_orders(folder_, plans_of(more));
  std::string refused = refusal();
  EXPECT_NE(refused.find("another step: it has 8 micro-batches, and this run has 4"),
            std::string::npos)
      << refused;
  more = plain_config();
  more.model.num_layers /= 2;
  schedule::write_orders(folder_, plans_of(more));
  refused = refusal();
  EXPECT_NE(refused.find("another step: its last layer is "), std::string::npos) << refused;
}

TEST_F(ScheduleFiles, SwappedNodesAreRefused) {
  schedule::write_orders(folder_, plans_of(plain_config()));
  const fs::path file = schedule::file_of(folder_, 0);
  std::string text = base::read_text(file);
  const std::string lines = "compute  0F0.attention\ncompute  0F0.route\n";
  const std::size_t at = text.find(lines);
  ASSERT_NE(at, std::string::npos) << text;
  base::write_whole(file,
                    text.replace(at, lines.size(), "compute  0F0.route\ncompute  0F0.attention\n"));
  const std::string refused = refusal();
  EXPECT_NE(refused.find("0F0.route may start before 0F0.attention is over"), std::string::npos)
      << refused;
}

TEST_F(ScheduleFiles, AFolderThatIsNotThereIsRefused) {
  const std::string refused = refusal();
  EXPECT_NE(refused.find(schedule::file_of(folder_, 0).string()), std::string::npos) << refused;
}

}  // namespace schedule_files_test
}  // namespace weft::train
