// An operation's size in the trace equals its real size.
#include <gtest/gtest.h>

#include "tests/comm/bench_support.h"

namespace weft::comm {
namespace work_size_test {

// Size of the single operation that `call` enqueues, compared with the counted bytes.
tensor::WorkSize size_of_one(Bench& bench, const std::function<void(Stream&)>& call) {
  const auto sent = [&] {
    std::int64_t bytes = 0;
    for (const auto& [operation, traffic] : bench.all->traffic()) bytes += traffic.bytes_sent;
    return bytes;
  };
  const std::int64_t before = sent();
  bench.stream->start_recording();
  call(*bench.stream);
  bench.stream->synchronize();
  const std::vector<tensor::WorkSpan> spans = bench.stream->take_recording();
  EXPECT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans.at(0).size.bytes, sent() - before) << spans.at(0).name;
  return spans.at(0).size;
}

void check_sizes(Bench& bench) {
  Communicator& all = *bench.all;
  const std::int64_t n = bench.world;
  const auto expect_everyone = [&](const tensor::WorkSize& size) {
    EXPECT_TRUE(std::ranges::equal(size.members, all.members()));
  };
  // Member i sends i + j + 1 rows to member j; a row is 3 fp32.
  std::vector<std::int64_t> rows;
  std::int64_t total = 0;
  for (std::int64_t peer = 0; peer < n; ++peer) {
    rows.push_back(bench.rank + peer + 1);
    total += rows.back();
  }
  const Tensor in = bench.tensor(DType::F32, {total, 3}),
               out = bench.tensor(DType::F32, {total, 3});
  const tensor::WorkSize exchange =
      size_of_one(bench, [&](Stream& s) { all.all_to_all(s, in, out, rows, rows); });
  EXPECT_EQ(exchange.rows, total - rows[static_cast<std::size_t>(bench.rank)]);
  EXPECT_EQ(exchange.bytes, exchange.rows * 12);
  expect_everyone(exchange);

  const Tensor part = bench.tensor(DType::F32, {5}), whole = bench.tensor(DType::F32, {5 * n});
  const Tensor uneven = bench.tensor(DType::F32, {2 * n + 1});
  for (const Tensor& tensor : {part, whole, uneven}) fill(bench, tensor, bench.rank, 0);
  expect_everyone(size_of_one(bench, [&](Stream& s) { all.all_gather(s, whole, part); }));
  expect_everyone(size_of_one(bench, [&](Stream& s) { all.reduce_scatter(s, part, whole); }));
  expect_everyone(size_of_one(bench, [&](Stream& s) { all.all_reduce(s, uneven, Reduce::Sum); }));
  expect_everyone(size_of_one(bench, [&](Stream& s) { all.broadcast(s, whole, bench.world - 1); }));
  expect_everyone(size_of_one(bench, [&](Stream& s) { all.barrier(s); }));
}

TEST(WorkSize, OfCollectivesIsWhatTheySend) {
  run_threads({.world = 3, .timeout_seconds = 20}, [](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Real, StreamRole::Communication);
    poison_on_error(endpoint, [&] { check_sizes(bench); });
  });
  run_fake({.world = 3, .rank = 1}, [](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Pretended, StreamRole::Communication);
    check_sizes(bench);
  });
}

TEST(WorkSize, OfAMessageNamesTheTwoRanks) {
  run_threads({.world = 3, .timeout_seconds = 20}, [](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Real, StreamRole::Communication);
    poison_on_error(endpoint, [&] {
      if (bench.rank == 1) return;
      const Tensor data = bench.tensor(DType::F32, {10});
      fill(bench, data, bench.rank, 0);
      const tensor::WorkSize size = size_of_one(bench, [&](Stream& s) {
        bench.rank == 0 ? bench.all->send(s, data, 2) : bench.all->receive(s, data, 0);
      });
      EXPECT_EQ(size.bytes, bench.rank == 0 ? 40 : 0);
      EXPECT_TRUE(std::ranges::equal(size.members, std::vector{0, 2}));
    });
  });
}

}  // namespace work_size_test
}  // namespace weft::comm
