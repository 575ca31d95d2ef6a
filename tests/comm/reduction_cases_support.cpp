#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "tests/comm/conformance_support.h"

namespace weft::comm {
namespace {

constexpr DType kReducible[] = {DType::F32, DType::F64, DType::I64};

template <typename T>
std::vector<std::byte> reduce_serially(const std::vector<std::vector<std::byte>>& all,
                                       Reduce reduce) {
  std::vector<std::byte> result = all[0];
  for (std::size_t at = 0; at < result.size(); at += sizeof(T)) {
    T sum;
    std::memcpy(&sum, all[0].data() + at, sizeof(T));
    for (std::size_t i = 1; i < all.size(); ++i) {
      T more;
      std::memcpy(&more, all[i].data() + at, sizeof(T));
      sum = reduce == Reduce::Sum ? static_cast<T>(sum + more) : std::max(sum, more);
    }
    std::memcpy(result.data() + at, &sum, sizeof(T));
  }
  return result;
}

// Reduces in member order: the bits that every backend must reproduce.
std::vector<std::byte> reduced(const Bench& bench,
                               DType dtype,
                               std::int64_t elements,
                               int round,
                               Reduce reduce) {
  std::vector<std::vector<std::byte>> all;
  for (int i = 0; i < bench.world; ++i)
    all.push_back(filled(dtype, elements, bench.stands_for(i), round));
  if (dtype == DType::F32) return reduce_serially<float>(all, reduce);
  if (dtype == DType::F64) return reduce_serially<double>(all, reduce);
  return reduce_serially<std::uint64_t>(all, reduce);
}

void reduces_everywhere(Bench& bench) {
  for (const DType dtype : kReducible) {
    for (const Reduce reduce : {Reduce::Sum, Reduce::Max}) {
      if (dtype == DType::I64 && reduce == Reduce::Max) continue;  // signed: a separate case
      for (const std::int64_t elements : {0, 1, 2, 5, 17, 1031}) {
        const Tensor data = bench.tensor(dtype, {elements});
        fill(bench, data, bench.rank, 1);
        bench.all->all_reduce(*bench.stream, data, reduce);
        bench.stream->synchronize();
        const auto expected = reduced(bench, dtype, elements, 1, reduce);
        expect_bytes(bench, data, expected, base::text("{} {}", elements, tensor::name_of(dtype)));
      }
    }
  }
}

// Chunks longer than the segment of an exchange (1 MiB on a CPU, 4 MiB on a GPU), of uneven length.
void reduces_large(Bench& bench) {
  const std::int64_t each = bench.device->name() == "cuda" ? 1'048'800 : 262'200;
  const std::int64_t elements = each * bench.world + 1;
  const Tensor data = bench.tensor(DType::F32, {elements});
  fill(bench, data, bench.rank, 2);
  bench.all->all_reduce(*bench.stream, data, Reduce::Sum);
  bench.stream->synchronize();
  expect_bytes(bench, data, reduced(bench, DType::F32, elements, 2, Reduce::Sum), "large");
}

void finds_largest(Bench& bench) {
  const Tensor integers = bench.tensor(DType::I64, {3});
  const std::int64_t values[] = {-7 - bench.rank, bench.rank, 5};
  tensor::write<std::int64_t>(*bench.stream, integers, values);
  bench.all->all_reduce(*bench.stream, integers, Reduce::Max);
  const Tensor reals = bench.tensor(DType::F32, {2});
  const float own[] = {
      bench.rank == bench.world / 2 ? std::numeric_limits<float>::quiet_NaN() : 1.0f,
      -1.0f - static_cast<float>(bench.rank)};
  tensor::write<float>(*bench.stream, reals, own);
  bench.all->all_reduce(*bench.stream, reals, Reduce::Max);
  bench.stream->synchronize();
  const std::int64_t low = -7 - bench.stands_for(0), high = bench.stands_for(bench.world - 1);
  const auto found = tensor::read<std::int64_t>(*bench.stream, integers);
  const std::vector<float> largest = tensor::read<float>(*bench.stream, reals);
  CHECK(found[0] == low && found[1] == high && found[2] == 5, "{} {}", found[0], found[1]);
  const bool meets_nan = bench.peers == Peers::Real || bench.rank == bench.world / 2;
  CHECK(std::isnan(largest[0]) == meets_nan, "{}", largest[0]);
  CHECK(largest[1] == -1.0f - static_cast<float>(bench.stands_for(0)), "largest");
}

void scatters_sums(Bench& bench) {
  for (const DType dtype : kReducible) {
    for (const std::int64_t rows : {0, 1, 7, 1031}) {
      const Tensor send = bench.tensor(dtype, {rows * bench.world});
      const Tensor receive = bench.tensor(dtype, {rows});
      fill(bench, send, bench.rank, 3);
      bench.all->reduce_scatter(*bench.stream, receive, send);
      bench.stream->synchronize();
      const auto all = reduced(bench, dtype, rows * bench.world, 3, Reduce::Sum);
      const std::int64_t bytes = receive.bytes();
      const auto begin = all.begin() + bench.rank * bytes;
      expect_bytes(bench, receive, {begin, begin + bytes}, base::text("{} rows", rows));
    }
  }
}

void scatters_in_place(Bench& bench) {
  const Tensor all = bench.tensor(DType::F32, {9 * bench.world});
  fill(bench, all, bench.rank, 4);
  const Tensor own = all.rows(9 * bench.rank, 9);
  bench.all->reduce_scatter(*bench.stream, own, all);
  bench.stream->synchronize();
  const auto sums = reduced(bench, DType::F32, 9 * bench.world, 4, Reduce::Sum);
  const auto begin = sums.begin() + bench.rank * own.bytes();
  expect_bytes(bench, own, {begin, begin + own.bytes()}, "in place");
}

void ignores_timing(Bench& bench) {
  for (int round = 0; round < 8; ++round) {
    const Tensor data = bench.tensor(DType::F32, {33});
    fill(bench, data, bench.rank, round);
    const auto delay = std::chrono::microseconds((bench.rank * 7919 + round * 104729) % 3000);
    std::this_thread::sleep_for(delay);
    bench.all->all_reduce(*bench.stream, data, Reduce::Sum);
    bench.stream->synchronize();
    expect_bytes(bench,
                 data,
                 reduced(bench, DType::F32, 33, round, Reduce::Sum),
                 base::text("{}", round));
  }
}

}  // namespace

std::vector<ConformanceCase> reduction_cases() {
  return {{"ReducesEverywhere", Suits::Every, reduces_everywhere},
          {"ReducesLarge", Suits::Threaded, reduces_large},
          {"FindsLargest", Suits::Every, finds_largest},
          {"ScattersSums", Suits::Every, scatters_sums},
          {"ScattersInPlace", Suits::Every, scatters_in_place},
          {"IgnoresTiming", Suits::Every, ignores_timing}};
}

}  // namespace weft::comm
