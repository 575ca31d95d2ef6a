#include "tests/comm/failure_support.h"

#include <chrono>
#include <thread>

#include "weft/tensor/transfers.h"

namespace weft::comm {
namespace {

void meet(Bench& bench) {
  bench.all->barrier(*bench.stream);
  bench.stream->synchronize();
}

void throws(Bench& bench) {
  if (bench.rank == 1) throw base::ConfigError("the disk is full");
  meet(bench);
}

// The queued barrier would hold up the end of rank 1's stream.
void throws_with_work_queued(Bench& bench) {
  if (bench.rank == 1) {
    bench.all->barrier(*bench.stream);
    throw base::SystemError("the disk is full");
  }
  bench.all->barrier(*bench.other);
  meet(bench);
}

void throws_on_a_stream(Bench& bench) {
  if (bench.rank == 1) {
    bench.stream->set_label("3F7.dispatch");
    bench.stream->enqueue_host("copy", tensor::WorkClass::Copy, [](tensor::Transfers&) {
      throw base::SystemError("link down");
    });
  }
  meet(bench);
}

void fails_in_another_group(Bench& bench) {
  const auto pair = bench.rank < 2 ? bench.endpoint.group("pair", {0, 1}) : nullptr;
  if (bench.rank == 0) throw base::SystemError("gone");
  if (bench.rank == 1) {
    pair->barrier(*bench.stream);
    bench.stream->synchronize();
  }
  meet(bench);
}

void never_arrives(Bench& bench) {
  if (bench.rank != 2) return meet(bench);
  std::this_thread::sleep_for(std::chrono::duration<double>(1.4 * kFailureTimeout));
}

void nobody_sends(Bench& bench) {
  if (bench.rank != 0) return;
  bench.all->receive(*bench.stream, bench.tensor(DType::F32, {4}), 2);
  bench.stream->synchronize();
}

void rows_differ(Bench& bench) {
  // Every rank sends a row to every other; rank 0 sends three to rank 1, which expects four.
  std::vector<std::int64_t> out(3, 1), in(3, 1);
  if (bench.rank == 0) out[1] = 3;
  if (bench.rank == 1) in[0] = 4;
  const Tensor send = bench.tensor(DType::F32, {8, 2});
  const Tensor receive = bench.tensor(DType::F32, {8, 2});
  fill(bench, send, bench.rank, 0);
  bench.all->all_to_all(*bench.stream, receive, send, in, out);
  bench.stream->synchronize();
}

void blocks_differ(Bench& bench) {
  // Two blocks of one row for every rank; rank 0 sends rank 1 both rows in the first.
  std::vector<std::int64_t> out(6, 1);
  const std::vector<std::int64_t> in(6, 1);
  if (bench.rank == 0) out[2] = 2, out[3] = 0;
  const Tensor send = bench.tensor(DType::F32, {6, 2});
  const Tensor receive = bench.tensor(DType::F32, {6, 2});
  fill(bench, send, bench.rank, 0);
  bench.all->all_to_all(*bench.stream, receive, send, {in, RowOrder::ByBlock}, out);
  bench.stream->synchronize();
}

void operations_differ(Bench& bench) {
  if (bench.rank != 0) return meet(bench);
  bench.all->all_reduce(*bench.stream, bench.tensor(DType::I64, {1}), Reduce::Sum);
  bench.stream->synchronize();
}

void sizes_differ(Bench& bench) {
  const Tensor data = bench.tensor(DType::F32, {bench.rank == 2 ? 6 : 5});
  fill(bench, data, bench.rank, 0);
  bench.all->all_reduce(*bench.stream, data, Reduce::Sum);
  bench.stream->synchronize();
}

void messages_differ(Bench& bench) {
  if (bench.rank == 2) return;
  const Tensor data = bench.tensor(DType::F32, {bench.rank == 0 ? 2 : 3});
  fill(bench, data, bench.rank, 0);
  if (bench.rank == 0) bench.all->send(*bench.stream, data, 1);
  if (bench.rank == 1) bench.all->receive(*bench.stream, data, 0);
  bench.stream->synchronize();
}

void rows_do_not_fit(Bench& bench) {
  const Tensor counts = bench.tensor(DType::I64, {3});
  const std::vector<std::int64_t> rows(3, bench.rank == 1 ? 9 : 1);
  tensor::write<std::int64_t>(*bench.stream, counts, rows);
  const Tensor send = bench.tensor(DType::F32, {32, 2});
  const Tensor receive = bench.tensor(DType::F32, {20, 2});
  fill(bench, send, bench.rank, 0);
  bench.all->all_to_all_counted(*bench.stream, receive, counts, send, counts);
  bench.stream->synchronize();
}

}  // namespace

const std::vector<FailureScenario>& failure_scenarios() {
  static const std::vector<FailureScenario> all = {
      {"Throws", throws, {"rank 1: the disk is full"}},
      {"ThrowsWithWorkQueued", throws_with_work_queued, {"rank 1: the disk is full"}},
      {"ThrowsOnAStream", throws_on_a_stream, {"rank 1: 3F7.dispatch (copy): link down"}},
      {"FailsInAnotherGroup", fails_in_another_group, {"rank 0: gone"}},
      {"NeverArrives", never_arrives, {"'all' barrier #0", "rank 2 did not arrive"}},
      {"NobodySends", nobody_sends, {"'all' receive #0", "rank 2 did not arrive"}},
      {"RowsDiffer", rows_differ, {"all_to_all", "rank 0", "3 rows", "rank 1", "4 rows"}},
      {"BlocksDiffer", blocks_differ, {"all_to_all", "rank 0", "rank 1", "blocks of other sizes"}},
      {"OperationsDiffer", operations_differ, {"rank 0", "all_reduce", "barrier"}},
      {"SizesDiffer", sizes_differ, {"rank 2", "24", "20", "bytes"}},
      {"MessagesDiffer", messages_differ, {"rank 0", "8 bytes", "rank 1", "12 bytes"}},
      {"RowsDoNotFit", rows_do_not_fit, {"rank 1 receives [9 9 9] rows; the tensor has 20"}},
  };
  return all;
}

void run_failure(const FailureScenario& scenario, Endpoint& endpoint) {
  Bench bench(endpoint, Peers::Real, StreamRole::Communication);
  poison_on_error(endpoint, [&] { scenario.run(bench); });
}

}  // namespace weft::comm
