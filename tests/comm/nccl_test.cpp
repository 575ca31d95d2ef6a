// Ranks on GPUs. NCCL takes one rank per GPU, so on a single GPU one rank sends to itself.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/comm/conformance_support.h"
#include "weft/base/error.h"

namespace weft::comm {
namespace nccl_test {

LaunchOptions alone() { return {.world = 1, .timeout_seconds = 20}; }

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

// Reason why no rank can run here; empty: one can.
const std::string& why_no_nccl() {
  static const std::string kReason = [] {
    if (!devices::why_no_gpu().empty()) return devices::why_no_gpu();
    try {
      run_nccl(alone(), [](Endpoint&) {});
      return std::string();
    } catch (const base::SystemError& error) {
      return std::string(error.what());
    }
  }();
  return kReason;
}

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_nccl().empty()) GTEST_SKIP() << "no rank talks through NCCL: " << why_no_nccl();
  }
};

TEST(RunNccl, NeedsALauncherForSeveralRanks) {
  if (!comm::why_no_nccl().empty()) GTEST_SKIP() << comm::why_no_nccl();
  EXPECT_THROW(run_nccl({.world = 4}, [](Endpoint&) {}), base::ConfigError);
  EXPECT_THROW(run_nccl({.world = 4, .environment = {{"RANK", "one"}, {"WORLD_SIZE", "4"}}},
                        [](Endpoint&) {}),
               base::ConfigError);
}

TEST(RunNccl, RefusesAnEmulatedFabric) {
  EXPECT_THROW(
      run_nccl({.world = 1, .fabric = grid::Fabric{.jitter_seconds = 1}}, [](Endpoint&) {}),
      base::ConfigError);
}

TEST(RunNccl, SaysWhatIsMissingWhereItCannotRun) {
  if (why_no_nccl().empty()) GTEST_SKIP() << "nothing is missing here";
  const auto run = [] { run_nccl({.world = 1}, [](Endpoint&) {}); };
  EXPECT_THROW(run(), base::SystemError);
  EXPECT_GT(error_of(run).size(), 20u);
}

TEST(RunNccl, ItsVariablesAreThoseOfTheLaunchers) {
  const auto names = nccl_variables();
  for (const std::string_view name : {"RANK", "MASTER_PORT", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  }
}

TEST_F(Nccl, OneRankThatSendsToItselfConforms) {
  run_nccl(alone(), [](Endpoint& endpoint) {
    for (const StreamRole role : {StreamRole::Communication, StreamRole::Alone}) {
      for (const ConformanceCase& test : conformance_cases()) {
        if (!suits(test, Peers::Real, role)) continue;
        if (test.name == "GroupsRunBesideEachOther") continue;  // NCCL needs a common order of all
        SCOPED_TRACE(test.name);
        run_conformance(test, endpoint, Peers::Real, role, DeviceKind::Cuda);
      }
    }
  });
}

TEST_F(Nccl, AFailureEndsTheNextOperation) {
  const std::string error = error_of([] {
    run_nccl(alone(), [](Endpoint& endpoint) {
      Bench bench(endpoint, Peers::Real, StreamRole::Communication, DeviceKind::Cuda);
      bench.all->barrier(*bench.stream);
      bench.stream->synchronize();
      endpoint.fail("the disk is full");
      bench.all->barrier(*bench.stream);
      bench.stream->synchronize();
    });
  });
  EXPECT_NE(error.find("the disk is full"), std::string::npos) << error;
}

TEST_F(Nccl, RowsThatDoNotFitAreAnErrorOfTheStream) {
  const std::string error = error_of([] {
    run_nccl(alone(), [](Endpoint& endpoint) {
      Bench bench(endpoint, Peers::Real, StreamRole::Communication, DeviceKind::Cuda);
      const Tensor rows = bench.tensor(DType::F32, {4, 2}), into = bench.tensor(DType::F32, {4, 2});
      const Tensor counts = bench.tensor(DType::I64, {1});
      tensor::write<std::int64_t>(*bench.stream, counts, std::vector<std::int64_t>{5});
      bench.all->all_to_all_counted(*bench.stream, into, counts, rows, counts);
      bench.stream->synchronize();
    });
  });
  EXPECT_NE(error.find("[5] rows; the tensor has 4"), std::string::npos) << error;
}

// Because of the host work, the first stream issues from its own thread.
TEST_F(Nccl, GroupsOnSeveralStreamsKeepTheirOrder) {
  run_nccl(alone(), [](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Real, StreamRole::Communication, DeviceKind::Cuda);
    const auto second = bench.everyone("second");
    const Tensor one = bench.tensor(DType::F32, {1000}), two = bench.tensor(DType::F32, {1000});
    fill(bench, one, 0, 0);
    fill(bench, two, 1, 0);
    for (int i = 0; i < 50; ++i) {
      bench.stream->enqueue_host("host", tensor::WorkClass::Copy, [](tensor::Transfers&) {});
      bench.all->all_reduce(*bench.stream, one, Reduce::Sum);
      second->all_reduce(*bench.other, two, Reduce::Max);
    }
    bench.other->synchronize();
    expect_bytes(bench, one, filled(DType::F32, 1000, 0, 0), "one");
    expect_bytes(bench, two, filled(DType::F32, 1000, 1, 0), "two");
  });
}

}  // namespace nccl_test
}  // namespace weft::comm
