// A run that is too large is refused with what would make it fit, whatever it is too large for.
#include "weft/cli/memory_limit.h"

#include <gtest/gtest.h>

#include "weft/cli/machine_limit.h"
#include "weft/cli/memory_search.h"
#include "weft/cli/run_room.h"
#include "weft/derive/gpu.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::cli {
namespace memory_limit_test {

using kernels::Gpu;
using measure::HostRoom;
using measure::MemoryRoom;
using measure::RanksIn;

constexpr std::int64_t kGb = 1000 * 1000 * 1000;
const measure::Tell kSilent = [](const std::string&) {};

config::Config small_run() {
  config::Config config;
  config.model.num_layers = 4;
  config.model.hidden_size = 64;
  config.model.num_attention_heads = 4;
  config.model.ffn_hidden_size = 128;
  config.model.num_moe_experts = 4;
  config.model.moe_ffn_hidden_size = 128;
  config.model.moe_router_topk = 2;
  config.model.seq_length = 512;
  config.model.vocab_size = 64;
  config.train.micro_batch_size = 4;
  config.train.global_batch_size = 8;
  config.runtime.world_size = 2;
  return config;
}

Gpu card(std::int64_t memory, std::int64_t free) {
  return {.name = "a card", .major = 9, .memory_bytes = memory * kGb, .free_bytes = free * kGb};
}

TEST(RunRoom, ACardHasWhatIsFreeOfItLessTheReserve) {
  const auto room = device_room({card(140, 120)}, 1, config::CommBackend::Threads);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes(), static_cast<std::size_t>(115 * kGb));
  EXPECT_EQ(room->reserved_bytes, static_cast<std::size_t>(derive::kReservedGb * kGb));
  EXPECT_EQ(device_room({card(16, 10)}, 1, config::CommBackend::Threads)->bytes(),
            static_cast<std::size_t>(9 * kGb))
      << "of a small card no more than a sixteenth";
}

TEST(RunRoom, RanksShareTheCardsInTurn) {
  const std::vector<Gpu> two{card(80, 80), card(80, 40)};
  EXPECT_EQ(device_room(two, 1, config::CommBackend::Threads)->bytes(), 75u * kGb);
  EXPECT_EQ(device_room(two, 2, config::CommBackend::Threads)->bytes(), 35u * kGb)
      << "the one with less decides";
  EXPECT_EQ(device_room(two, 4, config::CommBackend::Threads)->bytes(), 35u * kGb / 2);
  EXPECT_EQ(device_room(two, 4, config::CommBackend::Mpi)->bytes(), 15u * kGb)
      << "every process has a context of its own";
  EXPECT_FALSE(device_room({}, 4, config::CommBackend::Mpi));
  Gpu broken = card(80, 80);
  broken.why_not = "no kernels";
  EXPECT_FALSE(device_room({broken}, 1, config::CommBackend::Threads));
}

TEST(RunRoom, ANamedGpuHasItsMemoryLessTheReserveOfThePlanner) {
  config::Config config = small_run();
  config.hardware.gpu = config::Gpu::H100;
  config.hardware.host_memory_gb = 100;
  const MemoryRoom room = judged_room(config);
  EXPECT_EQ(room.device->memory_bytes, 84900u * kGb / 1000) << "as CUDA counts it, not 80 GB";
  EXPECT_EQ(room.device->bytes(), 79900u * kGb / 1000);
  EXPECT_EQ(room.host->bytes, 80u * kGb);
  EXPECT_EQ(room.host->ranks, 2) << "no more than the run has";
}

// Ranks on the host's cores, in a machine that has four fifths of what they need.
TEST(MemoryLimit, ARunOnCoresIsRefusedWithSavingsThatMakeItFit) {
  const config::Config asked = small_run();
  const config::Config judged = rules::validate(asked).config;
  MemoryRoom room{.host = HostRoom{.name = "this machine", .ranks = 2, .memory = RanksIn::Host}};
  const auto need = [&](const config::Config& config) {
    return measure::host_need(measure::forecast_memory(config, measure::Priced::No), *room.host);
  };
  room.host->bytes = need(asked);
  EXPECT_TRUE(limits_of_run(asked, judged, room, kSilent).empty());
  room.host->bytes = need(asked) * 4 / 5;
  const std::vector<rules::Missing> limits = limits_of_run(asked, judged, room, kSilent);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_NE(limits[0].message.find("this machine has free"), std::string::npos)
      << limits[0].message;
  EXPECT_NE(limits[0].fix.find(" frees "), std::string::npos) << limits[0].fix;
  EXPECT_EQ(limits[0].fix.find("offload"), std::string::npos)
      << "it frees nothing where device and host are one: " << limits[0].fix;
  const MemoryReport report = report_fit(asked, room, kSilent);
  ASSERT_TRUE(report.fit) << limits[0].fix;
  EXPECT_LE(need(words::with_words(asked, report.fit->words)), room.host->bytes);
}

TEST(MemoryLimit, HostMemoryThatRanksShareIsALimitToo) {
  config::Config asked = small_run();
  asked.hardware.gpu = config::Gpu::H100;
  asked.runtime.device = config::DeviceKind::Cuda;
  asked.optimizer.optimizer_cpu_offload = true;
  asked.optimizer.optimizer_offload_fraction = 1;
  const config::Config judged = rules::judge(asked).config;
  MemoryRoom room = judged_room(judged);
  EXPECT_TRUE(limits_of_run(asked, judged, room, kSilent).empty());
  const measure::MemoryForecast forecast = measure::forecast_memory(asked, measure::Priced::No);
  const std::size_t need = measure::host_need(forecast, *room.host);
  EXPECT_EQ(need, 2 * forecast.host_bytes()) << "of both ranks";
  room.host->bytes = need * 3 / 4;
  const std::vector<rules::Missing> limits = limits_of_run(asked, judged, room, kSilent);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].part, "room in host memory");
  const std::string wanted = "use optimizer.optimizer_offload_fraction=";
  const std::size_t at = limits[0].fix.find(wanted);
  ASSERT_NE(at, std::string::npos) << limits[0].fix;
  asked.optimizer.optimizer_offload_fraction = std::stod(limits[0].fix.substr(at + wanted.size()));
  EXPECT_LE(measure::host_need(measure::forecast_memory(asked, measure::Priced::No), *room.host),
            room.host->bytes);
}

TEST(MemoryLimit, WhatNeedsLittleIsNotCounted) {
  const config::Config config = rules::validate(small_run()).config;
  MemoryRoom room{.host = HostRoom{.name = "this machine", .ranks = 2, .memory = RanksIn::Host}};
  room.host->bytes = kGb;
  const std::size_t least = least_need(config, *room.host);
  room.host->bytes = 2 * least;
  EXPECT_TRUE(is_ample(config, room));
  --room.host->bytes;
  EXPECT_FALSE(is_ample(config, room));
  EXPECT_FALSE(least_limit(config, room));
  room.host->bytes = least - 1;
  EXPECT_TRUE(least_limit(config, room));
}

}  // namespace memory_limit_test
}  // namespace weft::cli
