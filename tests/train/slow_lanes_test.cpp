// Slows each lane in turn, so that all others run ahead as far as their waits allow: no bit
// changes. A missing wait would read too early, or overwrite.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "tests/train/engine_cases_support.h"
#include "weft/base/check.h"

namespace weft::train {
namespace slow_lanes_test {

using config::Config;
using devices::DeviceKind;
using schedule::Lane;

// Several times the duration of a node of these small models.
constexpr auto kPause = std::chrono::microseconds(300);
constexpr std::size_t kLoad = 4 << 20;  // bytes to device memory

// ByHost: before each node of the lane, the stream waits for a pause of the host, on every second
// rank, so that ranks drift apart. ByDevice: for a copy on the device, on every rank; issuing stays
// ahead.
enum class Slowed { ByHost, ByDevice };

std::string_view word(Slowed slowed) {
  return slowed == Slowed::ByHost ? "by the host" : "by the device";
}

// Source and destination memory of copies.
class Load {
 public:
  explicit Load(tensor::Device& device)
      : device_(device),
        from_(device.take(tensor::Memory::HostVisible, kLoad)),
        to_(device.take(tensor::Memory::Device, kLoad)) {}
  ~Load() {
    device_.give_back(tensor::Memory::Device, to_, kLoad);
    device_.give_back(tensor::Memory::HostVisible, from_, kLoad);
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void put_on(tensor::Stream& stream) const { stream.upload(to_, from_, kLoad); }

 private:
  tensor::Device& device_;
  std::byte* const from_;
  std::byte* const to_;
};

// Runs steps with one slow lane; counts the delayed nodes.
TakeStep with_slow_lane(Lane slow, Slowed slowed, std::atomic<int>& held_up) {
  return [=, &held_up](Engine& engine, const StepInput& input) {
    const Load load(engine.device());
    const auto hold_up = [&](tensor::Stream& stream) {
      ++held_up;
      if (slow == Lane::Host) {
        std::this_thread::sleep_for(kPause);
      } else if (slowed == Slowed::ByDevice) {
        load.put_on(stream);
      } else {
        stream.enqueue_host("pause", tensor::WorkClass::Memory, [](tensor::Transfers&) {
          std::this_thread::sleep_for(kPause);
        });
      }
    };
    const bool mine = slowed == Slowed::ByDevice || engine.rank() % 2 == 0;
    Program& program = engine.program();
    exec::Executor& executor = engine.training();
    program.begin(input, &executor);
    std::size_t entry = 0;  // bodies are called in order of entries
    executor.run(
        [&](const schedule::Node& node, tensor::Stream& stream) {
          const Lane lane = executor.graph().entries[entry++].lane;
          if (mine && lane == slow) hold_up(stream);
          program.run(node, stream);
        },
        exec::Tracing::Off);
    const StepTotals totals = program.read_totals();
    CHECK(!totals.overflowed, "a step that would have to be repeated");
    return totals;
  };
}

std::set<Lane> lanes_of(const EngineCase& at) {
  const rules::JudgedConfig run = judged(at.config);
  std::set<Lane> lanes;
  for (const schedule::RankPlan& plan : verified_plans(run, at.detail)) {
    for (const schedule::Entry& entry : plan.training.entries) lanes.insert(entry.lane);
  }
  return lanes;
}

struct SlowCase {
  EngineCase at;
  DeviceKind device;
};
void PrintTo(const SlowCase& slow, std::ostream* out) { PrintTo(slow.at, out); }

// Two expert-parallel ranks, then engine cases with further lanes. The CPU runs those with most
// overlap.
std::vector<SlowCase> slow_cases() {
  const std::set<std::string> everywhere{"PipelineTied", "OffloadOverlap"};
  const std::set<std::string> on_gpus{"Overlapped",
                                      "Distributed",
                                      "PipelineDistributed",
                                      "TensorOverlap",
                                      "TensorParallelBf16",
                                      "ContextRing",
                                      "ContextHeadsBf16",
                                      "FoldedDualPipeV",
                                      "AllToAllSlices",
                                      "HybridEpSlices",
                                      "HybridEpBudgetKept",
                                      "SharedOverlapped",
                                      "OffloadedOptimizerBf16"};
  std::vector<SlowCase> cases;
  for (const DeviceKind device : devices::all_devices()) {
    if (device == DeviceKind::HiddenCpu) continue;  // computes like the CPU
    Config ep2 = with_layout(small_config(), {.world = 2, .ep = 2});
    to_overlap(ep2);
    cases.push_back({{"ExpertsOverlapped", ep2}, device});
    for (const EngineCase& at : engine_cases()) {
      const bool wanted = device == DeviceKind::Cuda && on_gpus.contains(at.name);
      if (wanted || everywhere.contains(at.name)) cases.push_back({at, device});
    }
  }
  return cases;
}

class SlowLanes : public testing::TestWithParam<SlowCase> {};

INSTANTIATE_TEST_SUITE_P(Layouts, SlowLanes, testing::ValuesIn(slow_cases()), [](const auto& test) {
  return test.param.at.name + "_" + devices::name_of(test.param.device);
});

TEST_P(SlowLanes, ChangeNoBit) {
  const auto& [at, device] = GetParam();
  constexpr int kSteps = 3;  // memory is planned after the first and the second step
  const Outcome expected = train_some(at.config, kSteps, at.detail, device);
  for (const Lane lane : lanes_of(at)) {
    for (const Slowed slowed : {Slowed::ByHost, Slowed::ByDevice}) {
      if (lane == Lane::Host && slowed == Slowed::ByDevice) continue;
      // On the CPU one of both is enough for a lane: the other way slows the next one.
      const bool in_turn = static_cast<int>(lane) % 2 == static_cast<int>(slowed);
      if (!soaks() && device == DeviceKind::Cpu && lane != Lane::Host && !in_turn) continue;
      SCOPED_TRACE(fmt::format("{} slowed {}", schedule::word(lane), word(slowed)));
      std::atomic<int> held_up = 0;
      const TakeStep take = with_slow_lane(lane, slowed, held_up);
      expect_same_bits(train_some(at.config, kSteps, at.detail, device, take), expected);
      EXPECT_GT(held_up, 0);
    }
  }
}

}  // namespace slow_lanes_test
}  // namespace weft::train
