#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/comm/conformance_support.h"
#include "weft/tensor/transfers.h"

namespace weft::comm {
namespace {

using std::chrono::milliseconds;

Tensor one(Bench& bench, float value) {
  const Tensor tensor = bench.tensor(DType::F32, {1});
  tensor::write<float>(*bench.stream, tensor, {&value, 1});
  return tensor;
}

std::vector<float> floats(Bench& bench, const Tensor& tensor) {
  return tensor::read<float>(*bench.stream, tensor);
}

float number(Bench& bench, const Tensor& tensor) { return floats(bench, tensor).front(); }

// Sum of rank + base over the world.
float rank_sum(const Bench& bench, float base) {
  float sum = 0;
  for (int i = 0; i < bench.world; ++i) sum += base + static_cast<float>(bench.stands_for(i));
  return sum;
}

// A waiting group does not hold up other groups.
void groups_run_beside_each_other(Bench& bench) {
  const auto slow = bench.everyone("slow");
  const auto fast = bench.everyone("fast");
  const auto rank = static_cast<float>(bench.rank);
  const Tensor a = one(bench, 1 + rank), b = one(bench, 2 + rank);
  std::atomic<bool> released = false;
  bench.stream->enqueue_host("hold", tensor::WorkClass::Memory, [&](tensor::Transfers&) {
    released.wait(false);
  });
  slow->all_reduce(*bench.stream, a, Reduce::Sum);
  const auto end = bench.stream->record();
  std::exception_ptr error;
  try {
    for (int i = 0; i < 3; ++i) fast->barrier(*bench.other);
    fast->all_reduce(*bench.other, b, Reduce::Sum);
    bench.other->synchronize();
    CHECK(!bench.stream->reached(end.ticket), "the held stream ran");
  } catch (...) {
    error = std::current_exception();
  }
  released = true;
  released.notify_all();
  if (error) std::rethrow_exception(error);
  bench.stream->synchronize();
  CHECK(number(bench, a) == rank_sum(bench, 1), "slow: {}", number(bench, a));
  CHECK(number(bench, b) == rank_sum(bench, 2), "fast: {}", number(bench, b));
}

// The order of calls counts, not the order in which streams reach them.
void one_group_runs_on_two_streams(Bench& bench) {
  const auto rank = static_cast<float>(bench.rank);
  for (int round = 0; round < 5; ++round) {
    const Tensor a = one(bench, 10 + rank), b = one(bench, 20 + rank);
    const bool first_is_late = (bench.rank + round) % 2 == 0;
    Stream& held = first_is_late ? *bench.stream : *bench.other;
    held.enqueue_host("late", tensor::WorkClass::Memory, [](tensor::Transfers&) {
      std::this_thread::sleep_for(milliseconds(2));
    });
    bench.all->all_reduce(*bench.stream, a, Reduce::Sum);
    bench.all->all_reduce(*bench.other, b, Reduce::Sum);
    bench.stream->synchronize();
    bench.other->synchronize();
    CHECK(number(bench, a) == rank_sum(bench, 10), "first: {}", number(bench, a));
    CHECK(number(bench, b) == rank_sum(bench, 20), "second: {}", number(bench, b));
  }
}

// Subsets of the ranks, and the whole world in reverse.
void groups_may_be_any_ranks(Bench& bench) {
  std::vector<int> alike, backwards;
  for (int i = bench.rank % 2; i < bench.world; i += 2) alike.push_back(i);
  for (int i = bench.world - 1; i >= 0; --i) backwards.push_back(i);
  const auto half = bench.endpoint.group("alike", alike);
  const auto reversed = bench.endpoint.group("backwards", backwards);
  const Tensor own = one(bench, static_cast<float>(bench.rank));
  const Tensor some = bench.tensor(DType::F32, {half->size()});
  const Tensor every = bench.tensor(DType::F32, {reversed->size()});
  half->all_gather(*bench.stream, some, own);
  reversed->all_gather(*bench.stream, every, own);
  bench.stream->synchronize();
  CHECK(reversed->rank() == bench.world - 1 - bench.rank, "{}", reversed->rank());
  for (int i = 0; i < half->size(); ++i) {
    const int expected = bench.stands_for(half->members()[static_cast<std::size_t>(i)]);
    CHECK(floats(bench, some)[static_cast<std::size_t>(i)] == static_cast<float>(expected),
          "{}",
          floats(bench, some)[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < bench.world; ++i) {
    const int expected = bench.stands_for(bench.world - 1 - i);
    CHECK(floats(bench, every)[static_cast<std::size_t>(i)] == static_cast<float>(expected),
          "{}",
          floats(bench, every)[static_cast<std::size_t>(i)]);
  }
}

void same_name_twice_is_two_groups(Bench& bench) {
  const auto first = bench.everyone("twin"), second = bench.everyone("twin");
  const Tensor a = one(bench, 1), b = one(bench, 2);
  // Half of the ranks use them in reverse order; each has its own stream.
  if (bench.rank % 2 == 0) first->all_reduce(*bench.stream, a, Reduce::Sum);
  second->all_reduce(*bench.other, b, Reduce::Sum);
  if (bench.rank % 2 != 0) first->all_reduce(*bench.stream, a, Reduce::Sum);
  bench.stream->synchronize();
  bench.other->synchronize();
  const auto n = static_cast<float>(bench.world);
  CHECK(number(bench, a) == n && number(bench, b) == 2 * n, "{}", number(bench, a));
}

// A pair that sends both ways at once, like pipeline neighbours.
void neighbours_send_both_ways(Bench& bench) {
  if (bench.world == 1 || bench.rank > 1) return;
  const int peer = 1 - bench.rank;
  const Tensor out = bench.tensor(DType::F32, {100'000});
  const Tensor in = bench.tensor(DType::F32, {100'000});
  fill(bench, out, bench.rank, 5);
  bench.all->send(*bench.stream, out, peer);
  bench.all->receive(*bench.other, in, peer);
  bench.stream->synchronize();
  bench.other->synchronize();
  expect_bytes(bench, in, filled(DType::F32, 100'000, peer, 5), "both ways");
}

void barrier_waits_for_all(Bench& bench) {
  bench.all->barrier(*bench.stream);
  bench.stream->synchronize();
  const auto begin = std::chrono::steady_clock::now();
  if (bench.rank == 0) std::this_thread::sleep_for(milliseconds(40));
  bench.all->barrier(*bench.stream);
  bench.stream->synchronize();
  const auto waited = std::chrono::steady_clock::now() - begin;
  CHECK(waited >= milliseconds(20) || bench.world == 1, "a barrier did not wait");
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void waiting_leaves_the_core_alone(Bench& bench) {
  if (bench.world == 1 || bench.rank > 1) return;
  const Tensor data = bench.tensor(DType::F32, {4});
  fill(bench, data, bench.rank, 0);
  if (bench.rank == 0) {
    std::this_thread::sleep_for(milliseconds(500));
    bench.all->send(*bench.stream, data, 1);
    bench.stream->synchronize();
    return;
  }
  double before = 0, after = 0;
  const auto read_clock = [&](double& into) {
    bench.stream->enqueue_host("clock", tensor::WorkClass::Memory, [&into](tensor::Transfers&) {
      into = thread_seconds();
    });
  };
  read_clock(before);
  bench.all->receive(*bench.stream, data, 0);
  read_clock(after);
  bench.stream->synchronize();
  CHECK(after - before < 0.2 * 0.5, "{} s of the core in 0.5 s of waiting", after - before);
}

}  // namespace

std::vector<ConformanceCase> concurrency_cases() {
  return {{"GroupsRunBesideEachOther", Suits::Threaded, groups_run_beside_each_other},
          {"OneGroupRunsOnTwoStreams", Suits::Threaded, one_group_runs_on_two_streams},
          {"GroupsMayBeAnyRanks", Suits::Every, groups_may_be_any_ranks},
          {"SameNameTwiceIsTwoGroups", Suits::Threaded, same_name_twice_is_two_groups},
          {"NeighboursSendBothWays", Suits::RealThreaded, neighbours_send_both_ways},
          {"BarrierWaitsForAll", Suits::RealThreaded, barrier_waits_for_all},
          {"WaitingLeavesTheCoreAlone", Suits::RealThreaded, waiting_leaves_the_core_alone}};
}

}  // namespace weft::comm
