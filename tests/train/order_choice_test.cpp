// Order left to the run: its first steps try both, and the choice changes no bit.
#include "weft/train/guard/order_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "tests/train/train_support.h"
#include "weft/rules/validate.h"
#include "weft/train/step.h"

namespace weft::train {
namespace order_choice_test {

config::Config left_to_the_run() {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.comm_overlap.overlap_moe_expert_parallel_comm = config::AutoSwitch::left_to_the_run();
  return config;
}

// Losses of the first rank, and its messages.
struct Told {
  std::vector<double> losses;
  std::vector<std::string> words;
};

// Runs steps with made-up times; `seconds`: of each step's order.
Told run(const config::Config& config, int steps, const std::vector<double>& seconds) {
  Told told;
  on_ranks(config, [&](Engine& engine) {
    OrderChoice order(engine);
    for (int step = 0; step < steps; ++step) {
      order.begin_step();
      const StepTotals totals = train_step(
          engine,
          {.batch = batch_of(engine, step), .step = step, .learning_rate = config.optimizer.lr},
          exec::Tracing::Off);
      const std::size_t turn = static_cast<std::size_t>(step) % seconds.size();
      const std::optional<std::string> words = order.end_step(seconds[turn]);
      EXPECT_EQ(words.has_value(), step == 11) << step;
      if (engine.rank() != 0) continue;
      told.losses.push_back(totals.loss);
      if (words) told.words.push_back(*words);
    }
  });
  return told;
}

TEST(OrderChoice, TakesTheFastestAndKeepsTheBits) {
  const std::vector<double> plain =
      train_some(with_layout(small_config(), {.world = 2, .ep = 2}), 15).losses;
  const struct {
    std::vector<double> seconds;
    std::string chosen;
  } cases[] = {{{3, 2, 1}, "order     overlap + delayed wgrad from now on"},
               {{3, 1, 2}, "order     overlap from now on"},
               {{1, 1, 1}, "order     plain from now on"}};
  for (const auto& [seconds, chosen] : cases) {
    const Told told = run(left_to_the_run(), 15, seconds);
    ASSERT_EQ(told.words.size(), 1u);
    EXPECT_EQ(told.words.front().rfind(chosen, 0), 0u) << told.words.front();
    // A sanitizer shortens the plain run.
    ASSERT_LE(plain.size(), told.losses.size());
    EXPECT_TRUE(std::ranges::equal(plain, std::span(told.losses).first(plain.size())));
  }
}

TEST(OrderChoice, WhereOverlapCannotRunThereIsNone) {
  config::Config config = small_config();  // one rank
  config.comm_overlap.overlap_moe_expert_parallel_comm = config::AutoSwitch::left_to_the_run();
  const rules::Verdict verdict = rules::judge(config);
  EXPECT_TRUE(verdict.runs());
  EXPECT_FALSE(verdict.config.comm_overlap.overlap_moe_expert_parallel_comm);
  ASSERT_FALSE(verdict.automatic.empty());
  EXPECT_EQ(verdict.automatic.back().id, "W112");
  EXPECT_NE(verdict.automatic.back().message.find("C14"), std::string::npos);
}

}  // namespace order_choice_test
}  // namespace weft::train
