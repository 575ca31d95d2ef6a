#include "weft/measure/memory/memory_room.h"

#include <gtest/gtest.h>

#include "tests/train/train_support.h"

namespace weft::measure {
namespace memory_room_test {

// Four ranks; two pipeline ranks with 10 and 20 bytes on the device, and 1 and 2 offloaded.
MemoryForecast four_ranks() {
  MemoryForecast forecast;
  forecast.layout = {.world = 4, .pp = 2};
  for (int stage = 1; stage <= 2; ++stage) {
    train::PredictedMemory memory;
    memory.rank = 2 * (stage - 1);
    memory.peak_total_bytes = static_cast<std::size_t>(10 * stage);
    memory.peak_bytes[static_cast<std::size_t>(tensor::Tag::Offloaded)] =
        static_cast<std::size_t>(stage);
    forecast.stages.push_back(memory);
  }
  return forecast;
}

HostRoom host_of(std::int64_t ranks, RanksIn memory) {
  return {.name = "a machine", .bytes = 0, .ranks = ranks, .memory = memory};
}

TEST(MemoryRoom, AMachineHoldsAllRanksThatShareIt) {
  MemoryForecast forecast = four_ranks();
  EXPECT_EQ(host_need(forecast, host_of(1, RanksIn::Device)), 2u);
  EXPECT_EQ(host_need(forecast, host_of(2, RanksIn::Device)), 4u) << "the machine with most";
  EXPECT_EQ(host_need(forecast, host_of(4, RanksIn::Device)), 6u);
  forecast.snapshots = {100, 200, 300, 400};
  EXPECT_EQ(host_need(forecast, host_of(2, RanksIn::Device)), 704u);
  EXPECT_EQ(host_need(forecast, host_of(4, RanksIn::Device)), 1006u);
  EXPECT_EQ(host_need(forecast, host_of(4, RanksIn::Host)), 1066u + 4 * kBesideTensors);
}

TEST(MemoryRoom, SaysWhatLacksOfEach) {
  const MemoryForecast forecast = four_ranks();
  const DeviceRoom device{.name = "a card", .memory_bytes = 22, .reserved_bytes = 5};
  EXPECT_EQ(device.bytes(), 17u);
  HostRoom host = host_of(4, RanksIn::Device);
  host.bytes = 5;
  const Overrun both = overrun(forecast, {.device = device, .host = host});
  EXPECT_EQ(both.device, 3u);
  EXPECT_EQ(both.host, 1u);
  host.bytes = 6;
  EXPECT_TRUE(overrun(forecast, {.host = host}).is_none());
  EXPECT_TRUE(overrun({}, {.device = device, .host = host}).is_none()) << "nothing is predicted";
}

// Covers all ranks, not only one per pipeline rank.
TEST(MemoryRoom, TheCopyOfASaveIsForecastOfEveryRank) {
  config::Config config = train::with_layout(train::deep_config(), {.world = 4, .ep = 2, .pp = 2});
  config.checkpoint.save = "somewhere";
  config.checkpoint.save_interval = 1;
  config.checkpoint.async_save = true;
  const MemoryForecast forecast = forecast_memory(config, Priced::No);
  ASSERT_EQ(forecast.snapshots.size(), 4u);
  std::size_t sum = 0;
  for (const std::size_t bytes : forecast.snapshots) sum += bytes;
  const std::size_t with = host_need(forecast, host_of(4, RanksIn::Device));
  EXPECT_GT(forecast.snapshots[1], 0u);
  EXPECT_EQ(with, sum);
}

}  // namespace memory_room_test
}  // namespace weft::measure
