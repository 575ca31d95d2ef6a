// A run that exceeds any limit is refused with savings that make it fit.
#include "weft/cli/memory/memory_limit.h"

#include <gtest/gtest.h>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/cli/memory/memory_search.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/cli/run/run_room.h"
#include "weft/derive/gpu.h"
#include "weft/measure/memory/less_offload.h"
#include "weft/measure/memory/memory_forecast.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::cli {
namespace memory_limit_test {

using kernels::Gpu;
using measure::HostRoom;
using measure::MemoryForecast;
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

// Rank 0 of a pretended world runs alone: memory of the others does not count.
TEST(RunRoom, OfAPretendedWorldOnlyRankZeroIsCounted) {
  const grid::Layout layout{.world = 4, .pp = 2};
  const auto bytes = [](int, int pp_rank) {
    return pp_rank == 0 ? std::size_t{1} : std::size_t{9};
  };
  EXPECT_EQ(measure::most_of_machine(layout, HostRoom{.ranks = 1}, bytes), 9u);
  EXPECT_EQ(measure::most_of_machine(layout, HostRoom{.ranks = 4}, bytes), 20u);
  EXPECT_EQ(measure::most_of_machine(layout, HostRoom{.ranks = 1, .rank_zero_alone = true}, bytes),
            1u);
  measure::MemoryForecast forecast;
  forecast.stages = {{.peak_total_bytes = 1}, {.peak_total_bytes = 9}};
  forecast.layout = layout;
  const measure::DeviceRoom device{.name = "a card", .memory_bytes = 5};
  HostRoom host{.bytes = 100, .ranks = 1};
  EXPECT_EQ(measure::overrun(forecast, {.device = device, .host = host}).device, 4u);
  host.rank_zero_alone = true;
  EXPECT_EQ(measure::overrun(forecast, {.device = device, .host = host}).device, 0u);
  config::Config config = small_run();
  EXPECT_FALSE(host_room_here(config).host->rank_zero_alone);
  config.runtime.backend = config::CommBackend::Fake;
  EXPECT_TRUE(host_room_here(config).host->rank_zero_alone);
}

// Ranks on CPU cores, on a machine with four fifths of the needed memory.
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
  const std::vector<MemoryLimit> limits = limits_of_run(asked, judged, room, kSilent);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_NE(limits[0].missing.message.find("this machine has free"), std::string::npos)
      << limits[0].missing.message;
  EXPECT_NE(limits[0].missing.fix.find(" frees "), std::string::npos) << limits[0].missing.fix;
  EXPECT_EQ(limits[0].missing.fix.find("offload"), std::string::npos)
      << "it frees nothing where device and host are one: " << limits[0].missing.fix;
  const MemoryReport report = report_fit(asked, room, kSilent);
  ASSERT_TRUE(report.fit) << limits[0].missing.fix;
  EXPECT_LE(need(words::with_words(asked, report.fit->words)), room.host->bytes);
}

// Each saving of a long step would need an equally long dry step.
TEST(MemoryLimit, SavingsOfALongStepOnCoresAreCountedOnRequestAlone) {
  using What = CountWish::What;
  config::Config asked = small_run();
  const auto report_of = [&](What savings, What ranks = What::WhatIsShort) {
    MemoryReport report = report_peaks(asked, {}, {.ranks = ranks, .savings = savings}, kSilent);
    EXPECT_GT(report.forecast.peak_bytes(), 0u);
    return report;
  };
  const MemoryReport quick = report_of(What::WhatIsShort);
  EXPECT_FALSE(quick.savings_wait || quick.is_extended);
  asked.model.num_layers = 260;
  MemoryReport report = report_of(What::WhatIsShort);
  EXPECT_TRUE(report.is_extended) << "by models of some of the layers";
  const MemoryForecast counted = report_of(What::WhatIsShort, What::Everything).forecast;
  for (std::size_t i = 0; i < counted.stages.size(); ++i) {
    EXPECT_NEAR(base::number(report.forecast.stages[i].peak_total_bytes),
                base::number(counted.stages[i].peak_total_bytes),
                0.001 * base::number(counted.stages[i].peak_total_bytes));
    EXPECT_EQ(report.forecast.stages[i].at_peak.node, counted.stages[i].at_peak.node);
  }
  add_savings(asked, kSilent, report);
  ASSERT_TRUE(report.savings);
  ASSERT_FALSE(report.savings->worthwhile.empty());
  EXPECT_NE(savings_text(report).find("--count counts them"), std::string::npos);
  const measure::Saving& saving = report.savings->worthwhile.front();
  const MemoryForecast with =
      measure::forecast_memory(words::with_words(asked, saving.words), measure::Priced::No);
  EXPECT_NEAR(base::number(saving.peak_bytes),
              base::number(with.peak_bytes()),
              0.001 * base::number(with.peak_bytes()))
      << saving.name;
  EXPECT_FALSE(report_of(What::Everything).is_extended);
  // Unequal layers are counted, and their savings wait.
  asked.model.moe_layer_freq.assign(260, 1);
  asked.model.moe_layer_freq[7] = 0;
  report = report_of(What::WhatIsShort);
  EXPECT_FALSE(report.is_extended);
  add_savings(asked, kSilent, report);
  EXPECT_FALSE(report.savings);
  EXPECT_NE(savings_text(report).find("--count counts them"), std::string::npos);
  EXPECT_TRUE(to_json(report).at("savings").is_null());
  MemoryRoom room{.host = HostRoom{.name = "this machine", .ranks = 2, .memory = RanksIn::Host}};
  room.host->bytes = report.forecast.peak_bytes();
  EXPECT_FALSE(report_fit(asked, room, kSilent).savings) << "of check and train too";
}

// GPU run with optimizer state in host memory, which has three quarters of the room.
class HostLimit : public testing::Test {
 protected:
  HostLimit() {
    asked_.hardware.gpu = config::Gpu::H100;
    asked_.runtime.device = config::DeviceKind::Cuda;
    asked_.optimizer.optimizer_cpu_offload = true;
    asked_.optimizer.optimizer_offload_fraction = 1;
    judged_ = rules::judge(asked_).config;
    room_ = judged_room(judged_);
    forecast_ = measure::forecast_memory(asked_, measure::Priced::No);
    need_ = measure::host_need(forecast_, *room_.host);
  }

  std::vector<MemoryLimit> limits() const { return limits_of_run(asked_, judged_, room_, kSilent); }
  void expect_room_with(const std::vector<std::string>& words) const {
    const config::Config with = words::with_words(asked_, words);
    const auto lacking =
        measure::overrun(measure::forecast_memory(with, measure::Priced::No), room_);
    EXPECT_EQ(lacking.device, 0u);
    EXPECT_EQ(lacking.host, 0u);
  }

  config::Config asked_ = small_run(), judged_;
  MemoryRoom room_;
  measure::MemoryForecast forecast_;
  std::size_t need_ = 0;
};

TEST_F(HostLimit, RanksShareTheMemoryOfTheirMachine) {
  EXPECT_TRUE(limits().empty());
  EXPECT_EQ(need_, 2 * forecast_.host_bytes()) << "of both ranks";
  room_.host->bytes = need_ * 3 / 4;
  const std::vector<MemoryLimit> limits = this->limits();
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].missing.part, "room in host memory");
  EXPECT_NE(limits[0].missing.fix.find("optimizer.optimizer_offload_fraction=0."),
            std::string::npos)
      << limits[0].missing.fix;
  ASSERT_TRUE(limits[0].fit);
  EXPECT_EQ(limits[0].fit->words.size(), 1u) << limits[0].missing.fix;
  expect_room_with(limits[0].fit->words);
}

// The GPU has no room for state that host memory lacks room for: activations give way.
TEST_F(HostLimit, WhatIsProposedFitsTheGpuToo) {
  room_.host->bytes = need_ * 3 / 4;
  room_.device->memory_bytes = room_.device->reserved_bytes + forecast_.peak_bytes();
  const std::vector<MemoryLimit> limits = this->limits();
  ASSERT_EQ(limits.size(), 1u);
  ASSERT_TRUE(limits[0].fit) << limits[0].missing.fix;
  EXPECT_EQ(limits[0].fit->names.front(), measure::kLessOffload);
  EXPECT_GT(limits[0].fit->names.size(), 1u) << limits[0].missing.fix;
  expect_room_with(limits[0].fit->words);
}

TEST_F(HostLimit, ThatNothingFitsBothIsSaid) {
  room_.host->bytes = need_ / 20;
  std::size_t state = 0;
  for (const tensor::Tag tag : {tensor::Tag::Weights, tensor::Tag::Gradients}) {
    state += forecast_.largest().peak_bytes[static_cast<std::size_t>(tag)];
  }
  room_.device->memory_bytes = room_.device->reserved_bytes + state;
  const std::vector<MemoryLimit> limits = this->limits();
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_FALSE(limits[1].fit) << limits[1].missing.fix;
  EXPECT_NE(limits[1].missing.fix.find("host memory has room and the GPU has not"),
            std::string::npos)
      << limits[1].missing.fix;
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

config::Config run_on(config::Gpu gpu) {
  config::Config config = small_run();
  config.hardware.gpu = gpu;
  config.runtime.device = config::DeviceKind::Cuda;
  return config;
}

MemoryReport asked_for(const config::Config& config, std::optional<plan::Program> program) {
  return report_peaks(config, judged_room(config), {.program = program}, kSilent);
}

// The first line says whose memory and whose times.
TEST(MemoryProgram, IsTheOneThatIsAskedFor) {
  using plan::Program;
  const config::Config config = run_on(config::Gpu::H200);
  const MemoryReport weft = asked_for(config, std::nullopt);
  EXPECT_EQ(program_line(weft), "memory as Weft runs it\n");
  EXPECT_TRUE(is_counted(weft.forecast.largest()));
  MemoryReport megatron = asked_for(config, Program::MegatronBridge);
  EXPECT_EQ(program_line(megatron), "memory and times as Megatron Bridge runs it\n");
  EXPECT_FALSE(is_counted(megatron.forecast.largest()));
  EXPECT_NE(peaks_text(megatron, RanksShown::Largest).find("by the planner's formula"),
            std::string::npos);
  add_savings(config, kSilent, megatron);
  EXPECT_NE(megatron.costs.find("Megatron Bridge"), std::string::npos);
  EXPECT_EQ(to_json(megatron)["program"], "megatron");
}

TEST(MemoryProgram, OfMegatronWantsAGpuAndNoCounting) {
  using plan::Program;
  EXPECT_THROW(asked_for(small_run(), Program::MegatronBridge), base::ConfigError);
  const config::Config config = run_on(config::Gpu::H100);
  EXPECT_THROW(
      report_peaks(config,
                   judged_room(config),
                   {.savings = CountWish::What::Everything, .program = Program::MegatronBridge},
                   kSilent),
      base::ConfigError);
}

}  // namespace memory_limit_test
}  // namespace weft::cli
