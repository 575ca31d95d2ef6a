#include "weft/train/launch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>

#include "tests/devices/devices_support.h"
#include "tests/train/train_support.h"
#include "weft/base/error.h"
#include "weft/base/parallel/cores.h"
#include "weft/kernels/device.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/transfer.h"
#include "weft/tensor/transfers.h"

namespace weft::train {
namespace launch_test {

// A config that was not judged does not run.
static_assert(!std::is_constructible_v<Engine, config::Config, comm::Endpoint&>);
static_assert(std::is_constructible_v<Engine, rules::JudgedConfig, comm::Endpoint&>);

// Cores that a stream of each rank may use.
std::map<int, std::vector<int>> cores_of_streams(const config::Config& config) {
  std::mutex mutex;
  std::map<int, std::vector<int>> all;
  launch(judged(config), {}, [&](comm::Endpoint& endpoint) {
    const auto device = kernels::make_cpu_device();
    const auto stream = device->make_stream("one", tensor::StreamRole::Compute);
    stream->enqueue_host("look", tensor::WorkClass::Memory, [&](tensor::Transfers&) {
      const std::lock_guard lock(mutex);
      all[endpoint.rank()] = base::usable_cores();
    });
    stream->synchronize();
  });
  return all;
}

// Before a world exists, the error is only thrown to the caller, and not reported otherwise.
TEST(Launch, WhatFailsBeforeThereAreRanksIsThrownAsItIs) {
  config::Config config = with_layout(small_config(), {.world = 2});
  config.runtime.backend = config::CommBackend::Nccl;
  config.runtime.device = config::DeviceKind::Cuda;
  bool reported = false;
  const Process process{.report = [&](const std::string&) { reported = true; }};
  try {
    launch(judged(config), process, [](comm::Endpoint&) {});
    FAIL() << "no error";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("RANK"), std::string::npos) << error.what();
  } catch (const base::SystemError& error) {  // the backend is not built
    EXPECT_NE(std::string(error.what()).find("no NCCL backend"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(reported);
}

TEST(Launch, PinnedRanksShareTheCoresInTurn) {
  const std::vector<int> cores = base::usable_cores();
  config::Config config;
  config.runtime.world_size = 3;
  config.train.global_batch_size = 3;
  for (const auto& [rank, of_rank] : cores_of_streams(config)) EXPECT_EQ(of_rank, cores) << rank;
  config.runtime.pin_ranks = true;
  const auto pinned = cores_of_streams(config);
  ASSERT_EQ(pinned.size(), 3u);
  for (const auto& [rank, of_rank] : pinned) {
    EXPECT_EQ(of_rank, std::vector<int>{cores[static_cast<std::size_t>(rank) % cores.size()]});
  }
  EXPECT_EQ(base::usable_cores(), cores) << "the caller is left alone";
}

TEST(Launch, RanksShareTheCoresWithThoseThatAreThere) {
  const std::int64_t usable = std::ssize(base::usable_cores());
  config::Config config;
  config.runtime.world_size = 64 * usable;
  for (const auto backend : {config::CommBackend::Fake, config::CommBackend::Loopback}) {
    config.runtime.backend = backend;
    EXPECT_EQ(share_of_cores(config), usable) << "alone";
  }
  config.runtime.backend = config::CommBackend::Threads;
  EXPECT_EQ(share_of_cores(config), 1);
  config.runtime.backend = config::CommBackend::Mpi;
  config.runtime.ranks_per_node = 1;
  EXPECT_EQ(share_of_cores(config), usable) << "alone on its machine";
  config.runtime.ranks_per_node = base::online_cores();
  EXPECT_EQ(share_of_cores(config), 1);
}

TEST(Launch, APinnedRankThatIsTheCallerIsLetGoAtTheEnd) {
  const std::vector<int> cores = base::usable_cores();
  for (const auto backend : {config::CommBackend::Fake, config::CommBackend::Loopback}) {
    config::Config config;
    config.runtime.backend = backend;
    config.runtime.pin_ranks = true;
    launch(judged(config), {}, [&](comm::Endpoint&) {
      EXPECT_EQ(base::usable_cores(), std::vector<int>{cores[0]});
    });
    EXPECT_EQ(base::usable_cores(), cores);
  }
}

TEST(Launch, TheFabricOfTheConfigReachesTheBackend) {
  config::Config config;
  config.runtime.world_size = 2;
  config.train.global_batch_size = 2;
  config.fabric.intra_node_latency_us = 50'000;
  launch(judged(config), {}, [&](comm::Endpoint& endpoint) {
    devices::Workbench bench;
    auto& [device, pool, stream] = bench;
    const auto world = endpoint.group("world", {0, 1});
    const tensor::Tensor number(pool, tensor::DType::F64, {1}, tensor::Tag::Workspace);
    tensor::write<double>(*stream, number, std::vector<double>{1});
    const auto start = std::chrono::steady_clock::now();
    world->all_reduce(*stream, number, comm::Reduce::Sum);
    stream->synchronize();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
  });
}

}  // namespace launch_test
}  // namespace weft::train
