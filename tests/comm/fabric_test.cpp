// Operations over emulated links: never earlier than the model, contending for ports, and ended by
// a failure. A bench measures the delay beyond the model.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/comm/bench_support.h"

namespace weft::comm {
namespace fabric_test {

using Clock = std::chrono::steady_clock;

constexpr double kLatency = 2e-3;
constexpr double kBytesPerSecond = 20e6;
constexpr std::int64_t kFloats = 50000;  // 200 kB: 10 ms on the wire
constexpr double kPart = 4.0 * kFloats / kBytesPerSecond;
constexpr grid::Link kLink{.bytes_per_second = kBytesPerSecond, .latency_seconds = kLatency};

// Runs `body` on three ranks over `fabric` and expects at least `seconds` on every rank.
void expect_at_least(double seconds,
                     const grid::Fabric& fabric,
                     const std::function<void(Bench&)>& body) {
  run_threads({.world = 3, .timeout_seconds = 20, .fabric = fabric}, [&](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Real, StreamRole::Communication);
    poison_on_error(endpoint, [&] {
      const auto begin = Clock::now();
      body(bench);
      bench.stream->synchronize();
      bench.other->synchronize();
      const double took = std::chrono::duration<double>(Clock::now() - begin).count();
      // Clocks round to nanoseconds.
      EXPECT_GE(took, seconds - 1e-8) << "on rank " << bench.rank;
    });
  });
}

void all_to_all(Bench& bench, Communicator& group, Stream& stream) {
  const Tensor send = bench.tensor(DType::F32, {3 * kFloats});
  const Tensor receive = bench.tensor(DType::F32, {3 * kFloats});
  fill(bench, send, bench.rank, 0);
  const std::vector<std::int64_t> rows(3, kFloats);
  group.all_to_all(stream, receive, send, rows, rows);
}

TEST(EmulatedFabric, BarriersTakeTheLatency) {
  expect_at_least(2 * kLatency, {.intra = kLink}, [](Bench& bench) {
    for (int i = 0; i < 2; ++i) bench.all->barrier(*bench.stream);
  });
}

TEST(EmulatedFabric, AllToAllTakesItsPartsOneAfterTheOther) {
  expect_at_least(2 * kPart + kLatency, {.intra = kLink}, [](Bench& bench) {
    all_to_all(bench, *bench.all, *bench.stream);
  });
}

TEST(EmulatedFabric, AllReduceTakesBothItsHalves) {
  expect_at_least(4 * kPart + 2 * kLatency, {.intra = kLink}, [](Bench& bench) {
    const Tensor data = bench.tensor(DType::F32, {3 * kFloats});
    fill(bench, data, bench.rank, 0);
    bench.all->all_reduce(*bench.stream, data, Reduce::Sum);
  });
}

TEST(EmulatedFabric, SenderAndReceiverBothStayUntilTheBytesHavePassed) {
  expect_at_least(kPart + kLatency, {.intra = kLink}, [](Bench& bench) {
    const Tensor data = bench.tensor(DType::F32, {kFloats});
    fill(bench, data, bench.rank, 0);
    if (bench.rank == 0) bench.all->send(*bench.stream, data, 1);
    if (bench.rank == 1) bench.all->receive(*bench.stream, data, 0);
    // Rank 2 takes no part.
    if (bench.rank == 2) std::this_thread::sleep_for(std::chrono::duration<double>(2 * kPart));
  });
}

TEST(EmulatedFabric, GroupsContendForTheSamePorts) {
  expect_at_least(4 * kPart + kLatency, {.intra = kLink}, [](Bench& bench) {
    const auto second = bench.everyone("second");
    all_to_all(bench, *bench.all, *bench.stream);
    all_to_all(bench, *second, *bench.other);
    bench.stream->synchronize();
    bench.other->synchronize();
  });
}

TEST(EmulatedFabric, MachinesAreJoinedByTheOtherLink) {
  const grid::Link slow{.bytes_per_second = kBytesPerSecond / 2, .latency_seconds = 5 * kLatency};
  // Rank 2 is alone on its machine and receives two parts.
  expect_at_least(2 * kPart + 5 * kLatency,
                  {.ranks_per_node = 2, .intra = kLink, .inter = slow},
                  [](Bench& bench) { all_to_all(bench, *bench.all, *bench.stream); });
}

// Transfer of hours between ranks 0 and 1, which a failure of rank 2 ends.
TEST(EmulatedFabric, AFailureEndsASlowTransfer) {
  const grid::Fabric fabric{.intra = {.bytes_per_second = 1}};
  std::string error;
  try {
    run_threads({.world = 3, .timeout_seconds = 20, .fabric = fabric}, [](Endpoint& endpoint) {
      Bench bench(endpoint, Peers::Real, StreamRole::Communication);
      poison_on_error(endpoint, [&] {
        if (bench.rank == 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          throw base::SystemError("the disk is full");
        }
        const Tensor data = bench.tensor(DType::F32, {kFloats});
        fill(bench, data, bench.rank, 0);
        if (bench.rank == 0) bench.all->send(*bench.stream, data, 1);
        if (bench.rank == 1) bench.all->receive(*bench.stream, data, 0);
        try {
          bench.stream->synchronize();
        } catch (const base::SystemError& peer) {
          EXPECT_NE(std::string(peer.what()).find("rank 2 failed: the disk is full"),
                    std::string::npos)
              << peer.what();
          throw;
        }
        ADD_FAILURE() << "rank " << bench.rank << " did not learn of the failure";
      });
    });
  } catch (const base::SystemError& caught) {
    error = caught.what();
  }
  EXPECT_EQ(error, "rank 2: the disk is full");
}

TEST(EmulatedFabric, IsForThreadsAndOneRankAloneOnly) {
  const auto refusal = [](const auto& run) -> std::string {
    try {
      run(LaunchOptions{.world = 1, .fabric = grid::Fabric{.intra = kLink}}, [](Endpoint&) {});
    } catch (const base::ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal(run_fake).find("real networks are measured with MPI"), std::string::npos);
  if (has_mpi()) {
    EXPECT_NE(refusal(run_mpi).find("real networks are measured with MPI"), std::string::npos);
  }
}

// Runs `body` on one rank of three over loopback, on `fabric`; returns its duration.
double seconds_alone(const std::optional<grid::Fabric>& fabric,
                     const std::function<void(Bench&)>& body) {
  double seconds = 0;
  run_loopback({.world = 3, .rank = 1, .fabric = fabric}, [&](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Returning, StreamRole::Communication);
    poison_on_error(endpoint, [&] {
      const auto begin = Clock::now();
      body(bench);
      bench.stream->synchronize();
      bench.other->synchronize();
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    });
  });
  return seconds;
}

TEST(EmulatedFabric, OneRankAloneTakesTheTimeOfItsPorts) {
  const auto once = [](Bench& bench) { all_to_all(bench, *bench.all, *bench.stream); };
  EXPECT_GE(seconds_alone(grid::Fabric{.intra = kLink}, once), 2 * kPart + kLatency - 1e-8);
  EXPECT_GE(seconds_alone(grid::Fabric{.intra = kLink},
                          [](Bench& bench) { bench.all->barrier(*bench.stream); }),
            kLatency - 1e-8);
  // Groups contend here too.
  const auto twice = [&](Bench& bench) {
    const auto second = bench.everyone("second");
    all_to_all(bench, *bench.all, *bench.stream);
    all_to_all(bench, *second, *bench.other);
    bench.stream->synchronize();
    bench.other->synchronize();
  };
  EXPECT_GE(seconds_alone(grid::Fabric{.intra = kLink}, twice), 4 * kPart + kLatency - 1e-8);
}

TEST(EmulatedFabric, OneRankAloneChangesItsLinks) {
  run_loopback({.world = 3, .rank = 1}, [&](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Returning, StreamRole::Communication);
    poison_on_error(endpoint, [&] {
      std::vector<std::vector<std::byte>> answers;
      for (const auto& fabric : {std::optional<grid::Fabric>(),
                                 std::optional(grid::Fabric()),
                                 std::optional(grid::Fabric{.intra = kLink})}) {
        endpoint.set_fabric(fabric);
        const Tensor send = bench.tensor(DType::F32, {3 * kFloats});
        const Tensor receive = bench.tensor(DType::F32, {3 * kFloats});
        fill(bench, send, bench.rank, 0);
        const std::vector<std::int64_t> rows(3, kFloats);
        bench.all->all_to_all(*bench.stream, receive, send, rows, rows);
        answers.push_back(bytes_of(bench, receive));
      }
      EXPECT_EQ(answers[1], answers[0]);
      EXPECT_EQ(answers[2], answers[0]);
    });
  });
}

// Transfer of hours, which the rank itself ends.
TEST(EmulatedFabric, AFailureOfOneRankAloneEndsItsSlowTransfer) {
  std::string error;
  try {
    seconds_alone(grid::Fabric{.intra = {.bytes_per_second = 1}}, [](Bench& bench) {
      all_to_all(bench, *bench.all, *bench.stream);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      throw base::SystemError("the disk is full");
    });
  } catch (const base::SystemError& caught) {
    error = caught.what();
  }
  EXPECT_EQ(error, "rank 1: the disk is full");
}

}  // namespace fabric_test
}  // namespace weft::comm
