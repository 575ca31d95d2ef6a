#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "tests/comm/conformance_support.h"

namespace weft::comm {
namespace {

constexpr DType kEveryDType[] = {DType::F32, DType::BF16, DType::F64, DType::I32, DType::I64};
constexpr std::int64_t kWidth = 3;

using Counts = std::vector<std::int64_t>;

void append(std::vector<std::byte>& all, const std::vector<std::byte>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void gathers(Bench& bench) {
  for (const DType dtype : kEveryDType) {
    for (const std::int64_t rows : {0, 1, 5, 4099}) {
      const Tensor send = bench.tensor(dtype, {rows, kWidth});
      const Tensor receive = bench.tensor(dtype, {rows * bench.world, kWidth});
      fill(bench, send, bench.rank, 0);
      bench.all->all_gather(*bench.stream, receive, send);
      bench.stream->synchronize();
      std::vector<std::byte> expected;
      for (int i = 0; i < bench.world; ++i)
        append(expected, filled(dtype, rows * kWidth, bench.stands_for(i), 0));
      expect_bytes(bench,
                   receive,
                   expected,
                   base::text("{} rows {}", rows, tensor::name_of(dtype)));
    }
  }
}

void gathers_in_place(Bench& bench) {
  const Tensor all = bench.tensor(DType::F32, {4 * bench.world, kWidth});
  const Tensor own = all.rows(4 * bench.rank, 4);
  fill(bench, own, bench.rank, 0);
  bench.all->all_gather(*bench.stream, all, own);
  bench.stream->synchronize();
  std::vector<std::byte> expected;
  for (int i = 0; i < bench.world; ++i)
    append(expected, filled(DType::F32, 4 * kWidth, bench.stands_for(i), 0));
  expect_bytes(bench, all, expected, "in place");
}

// Rows between ranks: a pattern with zeros and different triangles.
std::int64_t rows_between(int from, int to, int pattern) {
  if (pattern == 0) return 0;
  return (from * 2 + to * pattern) % 5;
}

// Mark of the rows from one rank to another.
int mark(int from, int to) { return 10 * from + to; }

struct RowTensors {
  Counts send_rows, receive_rows;
  Tensor send, receive;
  std::vector<std::byte> expected;
};

RowTensors make_rows(Bench& bench, DType dtype, int pattern, std::int64_t spare) {
  RowTensors rows;
  for (int i = 0; i < bench.world; ++i) {
    rows.send_rows.push_back(rows_between(bench.rank, i, pattern));
    rows.receive_rows.push_back(rows_between(i, bench.rank, pattern));
  }
  const auto total = [](const Counts& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  rows.send = bench.tensor(dtype, {total(rows.send_rows) + spare, kWidth});
  rows.receive = bench.tensor(dtype, {total(rows.receive_rows) + spare, kWidth});
  fill(bench, rows.receive, 99, 0);
  rows.expected = bytes_of(bench, rows.receive);
  const std::int64_t row_bytes = kWidth * tensor::size_of(dtype);
  const std::int64_t own = rows_between(bench.rank, bench.rank, pattern);
  std::int64_t out = 0, in = 0;
  for (int i = 0; i < bench.world; ++i) {
    const auto at = static_cast<std::size_t>(i);
    fill(bench, rows.send.rows(out, rows.send_rows[at]), mark(bench.rank, i), pattern);
    out += rows.send_rows[at];
    const std::int64_t count = rows.receive_rows[at];
    auto bytes = filled(dtype, count * kWidth, mark(i, bench.rank), pattern);
    if (bench.peers != Peers::Real) {
      const bool returns = bench.peers == Peers::Returning;
      const auto kept =
          returns ? filled(dtype, rows.send_rows[at] * kWidth, mark(bench.rank, i), pattern)
                  : filled(dtype, own * kWidth, mark(bench.rank, bench.rank), pattern);
      for (std::size_t j = 0; j < bytes.size(); ++j)
        bytes[j] = kept.empty() ? std::byte{0} : kept[j % kept.size()];
    }
    std::copy(bytes.begin(), bytes.end(), rows.expected.begin() + in * row_bytes);
    in += count;
  }
  return rows;
}

void exchanges_rows(Bench& bench) {
  for (const DType dtype : kEveryDType) {
    for (const int pattern : {0, 1, 2, 3}) {
      const auto rows = make_rows(bench, dtype, pattern, 0);
      bench.all->all_to_all(*bench.stream,
                            rows.receive,
                            rows.send,
                            rows.receive_rows,
                            rows.send_rows);
      bench.stream->synchronize();
      expect_bytes(bench, rows.receive, rows.expected, base::text("pattern {}", pattern));
    }
  }
}

// Blocks of every member: leave by member, arrive by block, and return.
void exchanges_blocks(Bench& bench) {
  constexpr int kBlocks = 3;
  const auto rows_of = [](int from, int to, int block) { return rows_between(from, to, block); };
  const auto bytes_of_block = [](int from, int to, int block, std::int64_t rows) {
    return filled(DType::F32, rows * kWidth, mark(from, to), block);
  };
  Counts send_rows, receive_rows;
  for (int i = 0; i < bench.world; ++i) {
    for (int block = 0; block < kBlocks; ++block) {
      send_rows.push_back(rows_of(bench.rank, i, block));
      receive_rows.push_back(rows_of(i, bench.rank, block));
    }
  }
  const auto came = [&](int from, int block) {
    const std::int64_t rows = rows_of(from, bench.rank, block);
    auto bytes = bytes_of_block(from, bench.rank, block, rows);
    if (bench.peers == Peers::Real) return bytes;
    const int sent_to = bench.peers == Peers::Returning ? from : bench.rank;
    const auto kept =
        bytes_of_block(bench.rank, sent_to, block, rows_of(bench.rank, sent_to, block));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = kept.empty() ? std::byte{0} : kept[i % kept.size()];
    return bytes;
  };
  std::vector<std::byte> leaving, by_block, by_member;
  for (int i = 0; i < bench.world; ++i) {
    for (int block = 0; block < kBlocks; ++block) {
      append(leaving, bytes_of_block(bench.rank, i, block, rows_of(bench.rank, i, block)));
      append(by_member, came(i, block));
    }
  }
  for (int block = 0; block < kBlocks; ++block) {
    for (int i = 0; i < bench.world; ++i) append(by_block, came(i, block));
  }
  const auto rows_in = [](const std::vector<std::byte>& bytes) {
    return std::ssize(bytes) / (kWidth * tensor::size_of(DType::F32));
  };
  const auto tensor_of = [&](std::int64_t rows) {
    return bench.tensor(DType::F32, {rows, kWidth});
  };
  const Tensor send = tensor_of(rows_in(leaving));
  const auto* values = reinterpret_cast<const float*>(leaving.data());
  tensor::write<float>(*bench.stream, send, {values, leaving.size() / sizeof(float)});
  const Tensor sorted = tensor_of(rows_in(by_block)), plain = tensor_of(rows_in(by_member));
  bench.all->all_to_all(*bench.stream, sorted, send, {receive_rows, RowOrder::ByBlock}, send_rows);
  bench.all->all_to_all(*bench.stream, plain, send, receive_rows, send_rows);
  bench.stream->synchronize();
  expect_bytes(bench, sorted, by_block, "by block");
  expect_bytes(bench, plain, by_member, "by member");
  // Back to their source.
  const Tensor home = tensor_of(rows_in(leaving));
  bench.all->all_to_all(*bench.stream, home, sorted, send_rows, {receive_rows, RowOrder::ByBlock});
  bench.stream->synchronize();
  if (bench.peers == Peers::Real) expect_bytes(bench, home, leaving, "back home");
}

Tensor on_device(Bench& bench, const Counts& counts) {
  const Tensor tensor = bench.tensor(DType::I64, {static_cast<std::int64_t>(counts.size())});
  tensor::write<std::int64_t>(*bench.stream, tensor, counts);
  return tensor;
}

void exchanges_counted_rows(Bench& bench) {
  for (const int pattern : {0, 1, 2}) {
    const auto rows = make_rows(bench, DType::BF16, pattern, 7);
    bench.all->all_to_all_counted(*bench.stream,
                                  rows.receive,
                                  on_device(bench, rows.receive_rows),
                                  rows.send,
                                  on_device(bench, rows.send_rows));
    bench.stream->synchronize();
    expect_bytes(bench, rows.receive, rows.expected, base::text("pattern {}", pattern));
  }
}

void broadcasts(Bench& bench) {
  for (const DType dtype : kEveryDType) {
    for (int root = 0; root < bench.world; ++root) {
      for (const std::int64_t rows : {0, 5}) {
        const Tensor data = bench.tensor(dtype, {rows, kWidth});
        fill(bench, data, bench.rank, root);
        bench.all->broadcast(*bench.stream, data, root);
        bench.stream->synchronize();
        const auto expected = filled(dtype, rows * kWidth, bench.stands_for(root), root);
        expect_bytes(bench, data, expected, base::text("from {}", root));
      }
    }
  }
}

// Ring: rank 0 sends first and the others receive first, so one stream suffices.
void passes_round(Bench& bench) {
  if (bench.world == 1) return;
  const int next = (bench.rank + 1) % bench.world;
  const int before = (bench.rank + bench.world - 1) % bench.world;
  for (int round = 0; round < 3; ++round) {
    const std::int64_t rows = round == 1 ? 0 : 4;
    const Tensor out = bench.tensor(DType::BF16, {rows, kWidth});
    const Tensor in = bench.tensor(DType::BF16, {rows, kWidth});
    fill(bench, out, bench.rank, round);
    if (bench.rank == 0) bench.all->send(*bench.stream, out, next);
    bench.all->receive(*bench.stream, in, before);
    if (bench.rank != 0) bench.all->send(*bench.stream, out, next);
    bench.stream->synchronize();
    auto expected = filled(DType::BF16, rows * kWidth, before, round);
    if (bench.peers == Peers::Returning) {
      expected = filled(DType::BF16, rows * kWidth, bench.rank, 0);  // first one sent
    }
    const bool has_sent = bench.rank == 0 || round > 0;
    if (bench.peers == Peers::Pretended || (bench.peers == Peers::Returning && !has_sent)) {
      std::fill(expected.begin(), expected.end(), std::byte{0});
    }
    expect_bytes(bench, in, expected, base::text("round {}", round));
  }
}

void counts_bytes(Bench& bench) {
  const auto comm = bench.everyone("counted");
  const std::int64_t n = bench.world;
  const Tensor small = bench.tensor(DType::F32, {5});
  const Tensor large = bench.tensor(DType::F32, {5 * n});
  fill(bench, small, bench.rank, 0);
  fill(bench, large, bench.rank, 0);
  comm->all_gather(*bench.stream, large, small);
  comm->reduce_scatter(*bench.stream, small, large);
  comm->all_reduce(*bench.stream, small, Reduce::Sum);
  comm->broadcast(*bench.stream, small, 0);
  comm->barrier(*bench.stream);
  const auto rows = make_rows(bench, DType::F32, 1, 0);
  comm->all_to_all(*bench.stream, rows.receive, rows.send, rows.receive_rows, rows.send_rows);
  bench.stream->synchronize();

  const std::int64_t chunk = 5 / n + (bench.rank < 5 % n ? 1 : 0);
  const std::int64_t kept = rows.send_rows[static_cast<std::size_t>(bench.rank)];
  const std::map<Operation, std::int64_t> expected = {
      {Operation::AllGather, 20 * (n - 1)},
      {Operation::ReduceScatter, 20 * (n - 1)},
      {Operation::AllReduce, 4 * (5 - chunk + (n - 1) * chunk)},
      {Operation::Broadcast, bench.rank == 0 ? 20 * (n - 1) : 0},
      {Operation::Barrier, 0},
      {Operation::AllToAll, 4 * kWidth * (rows.send.dim(0) - kept)}};
  const auto traffic = comm->traffic();
  CHECK(traffic.size() == expected.size(), "{} operations counted", traffic.size());
  for (const auto& [operation, bytes] : expected) {
    const Traffic& found = traffic.at(operation);
    CHECK(found.calls == 1 && found.bytes_sent == bytes,
          "{}: {} calls, {} bytes counted, {} sent",
          name_of(operation),
          found.calls,
          found.bytes_sent,
          bytes);
  }
}

}  // namespace

std::vector<ConformanceCase> exchange_cases() {
  return {{"Gathers", Suits::Every, gathers},
          {"GathersInPlace", Suits::Every, gathers_in_place},
          {"ExchangesRows", Suits::Every, exchanges_rows},
          {"ExchangesBlocks", Suits::Every, exchanges_blocks},
          {"ExchangesCountedRows", Suits::Every, exchanges_counted_rows},
          {"Broadcasts", Suits::Every, broadcasts},
          {"PassesRound", Suits::Every, passes_round},
          {"CountsBytes", Suits::Every, counts_bytes}};
}

}  // namespace weft::comm
