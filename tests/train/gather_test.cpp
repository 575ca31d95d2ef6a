// Messages between ranks outside training arrive whole, on every device.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/train/train_support.h"
#include "weft/train/log/gather_texts.h"
#include "weft/train/log/gather_timelines.h"

namespace weft::train {
namespace gather_test {

class Gather : public testing::TestWithParam<devices::DeviceKind> {};

INSTANTIATE_TEST_SUITE_P(Devices,
                         Gather,
                         testing::ValuesIn(devices::all_devices()),
                         [](const auto& test) { return devices::name_of(test.param); });

const config::Config& four_ranks() {
  static const config::Config config = with_layout(small_config(), {.world = 4, .ep = 2});
  return config;
}

TEST_P(Gather, EveryRankHasTheTextsOfAllInTheirOrder) {
  const std::vector<std::string> texts{"a", "", std::string(5000, 'c'), "a line of words"};
  on_ranks(
      four_ranks(),
      [&](Engine& engine) {
        const std::vector<std::string> all =
            gather_texts(engine, texts[static_cast<std::size_t>(engine.rank())]);
        ASSERT_EQ(all.size(), texts.size());
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
          EXPECT_EQ(all[rank], texts[rank].substr(0, 4095));
        }
      },
      {},
      GetParam());
}

TEST_P(Gather, RankZeroHasTheTimelinesOfAllRanks) {
  std::vector<trace::Timeline> made(4), gathered;
  std::mutex mutex;
  on_ranks(
      four_ranks(),
      [&](Engine& engine) {
        const Batch batch = batch_of(engine, 0);
        train_step(engine, {.batch = batch}, exec::Tracing::On);
        const trace::Timeline own{.rank = engine.rank(),
                                  .label = engine.label(),
                                  .spans = engine.training().take_spans()};
        GatheredTimelines all = gather_timelines(engine, own);
        EXPECT_EQ(all.clocks, trace::Clocks::Shared);
        const std::lock_guard lock(mutex);
        made[static_cast<std::size_t>(own.rank)] = own;
        if (engine.rank() == 0) {
          gathered = std::move(all.timelines);
        } else {
          EXPECT_TRUE(all.timelines.empty());
        }
      },
      {},
      GetParam());
  ASSERT_EQ(gathered.size(), made.size());
  for (std::size_t rank = 0; rank < made.size(); ++rank) {
    EXPECT_FALSE(made[rank].spans.empty());
    EXPECT_EQ(gathered[rank].rank, made[rank].rank);
    EXPECT_EQ(gathered[rank].label, made[rank].label);
    EXPECT_EQ(gathered[rank].spans, made[rank].spans);
  }
}

}  // namespace gather_test
}  // namespace weft::train
