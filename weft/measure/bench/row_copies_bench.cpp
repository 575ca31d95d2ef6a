#include "weft/measure/bench/row_copies_bench.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <thread>

#include "weft/base/parallel/thread.h"
#include "weft/kernels/device.h"
#include "weft/kernels/kernels.h"
#include "weft/measure/bench/dispatch_bench.h"
#include "weft/measure/runs/rounds.h"
#include "weft/tensor/pool.h"
#include "weft/tensor/transfer.h"

namespace weft::measure {

using namespace train;
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tag;
using tensor::Tensor;

// Rows sorted by expert, with the origin of each.
struct Sorted {
  Tensor row_Tk, token_R;
};

class Copies {
 public:
  Copies(const RowCopiesRequest& request, std::int64_t hidden, int threads)
      : request_(request),
        hidden_(hidden),
        threads_(threads),
        device_(kernels::make_cpu_device(threads)),
        pool_(*device_),
        stream_(device_->make_stream("copies", tensor::StreamRole::Alone)) {}

  std::vector<RowCopy> run() {
    const std::int64_t rows = request_.tokens * request_.topk;
    const Sorted all = sorted(uniform_choices(0, request_.tokens, request_.topk, request_.experts),
                              request_.experts,
                              rows);
    const Tensor x_TD = touched(request_.tokens), x_RD = touched(rows),
                 y_TD = touched(request_.tokens);
    std::vector<RowCopy> copies;
    copies.push_back(measure("permute", 2 * x_RD.bytes(), x_RD, [&] {
      kernels::gather_rows(*stream_, x_RD, x_TD, all.token_R);
    }));
    copies.push_back(measure("unpermute", x_RD.bytes() + y_TD.bytes(), x_RD, [&] {
      kernels::sum_rows(*stream_, y_TD, x_RD, all.row_Tk);
    }));
    copies.back().read_bytes_per_second =
        static_cast<double>(x_RD.bytes() + y_TD.bytes()) / seconds_to_read(x_RD, all.row_Tk);
    const Received received = arriving();
    if (received.slots == 0) return copies;
    const Sorted own = sorted(received.choices, request_.experts / request_.ranks, received.slots);
    const Tensor from_RD = touched(received.rows), to_XD = touched(received.slots);
    copies.push_back(measure("expansion", 2 * to_XD.bytes(), to_XD, [&] {
      kernels::gather_rows(*stream_, to_XD, from_RD, own.token_R);
    }));
    return copies;
  }

 private:
  // Tokens with an expert on rank 0, among the tokens of all ranks.
  struct Received {
    std::vector<std::int32_t> choices;  // (rows, k); -1: expert of another rank
    std::int64_t rows = 0, slots = 0;
  };

  Received arriving() const {
    const std::int64_t k = request_.topk, local = request_.experts / request_.ranks;
    const std::vector<std::int32_t> all =
        uniform_choices(0, request_.tokens * request_.ranks, k, request_.experts);
    Received received;
    for (auto token = all.begin(); token != all.end(); token += k) {
      const auto own = std::count_if(token, token + k, [&](std::int32_t e) { return e < local; });
      if (own == 0) continue;
      received.slots += own;
      ++received.rows;
      std::transform(token, token + k, std::back_inserter(received.choices), [&](std::int32_t e) {
        return e < local ? e : -1;
      });
    }
    return received;
  }

  Sorted sorted(const std::vector<std::int32_t>& choices, std::int64_t experts, std::int64_t rows) {
    const std::int64_t k = request_.topk;
    const auto tokens = static_cast<std::int64_t>(choices.size()) / k;
    const Tensor chosen(pool_, DType::I32, {tokens, k}, Tag::Workspace);
    tensor::write<std::int32_t>(*stream_, chosen, choices);
    Sorted result{.row_Tk = Tensor::host_visible(pool_, DType::I32, {tokens, k}, Tag::Workspace),
                  .token_R = Tensor(pool_, DType::I32, {rows}, Tag::Workspace)};
    const Tensor slot_R(pool_, DType::I32, {rows}, Tag::Workspace);
    const Tensor counts(pool_, DType::I64, {experts}, Tag::Workspace);
    kernels::sort_by_expert(*stream_, result.row_Tk, slot_R, result.token_R, counts, chosen);
    return result;
  }

  // Writes it once, so that no page fault is timed.
  Tensor touched(std::int64_t rows) {
    const Tensor x = Tensor::host_visible(pool_, request_.dtype, {rows, hidden_}, Tag::Workspace);
    kernels::zero(*stream_, x);
    return x;
  }

  // Times `work` and a plain copy of equal bytes alternately, with memory of the kind of `rows`.
  template <typename Work>
  RowCopy measure(const char* name, std::int64_t bytes, const Tensor& rows, const Work& work) {
    const std::int64_t half = std::min(bytes / 2, static_cast<std::int64_t>(rows.bytes()));
    const Tensor from(pool_, DType::F32, {half / 4}, Tag::Workspace);
    const Tensor to(pool_, DType::F32, {half / 4}, Tag::Workspace);
    kernels::zero(*stream_, from);
    kernels::zero(*stream_, to);
    Rounds rounds({.rounds = request_.rounds + 1});
    const Samples& taken = rounds.time(until_done(work));
    const Samples& copied = rounds.time(until_done([&] { kernels::copy(*stream_, to, from); }));
    rounds.run();
    const double own = static_cast<double>(bytes) / taken.least();
    const double plain = static_cast<double>(2 * half) / copied.least();
    return {.name = name,
            .hidden = hidden_,
            .threads = threads_,
            .row_bytes_per_second =
                own * static_cast<double>(rows.bytes()) / static_cast<double>(bytes),
            .bytes_per_second = own,
            .memcpy_bytes_per_second = plain};
  }

  // Best time to read all rows in the order of `index`, with a prefetch of the next row.
  double seconds_to_read(const Tensor& x, const Tensor& index) {
    constexpr std::int64_t kLine = 16;  // words of four bytes
    const auto* words = request_.dtype == DType::F32
                            ? reinterpret_cast<const std::uint32_t*>(x.host<float>())
                            : reinterpret_cast<const std::uint32_t*>(x.host<tensor::BFloat16>());
    const auto* order = index.host<std::int32_t>();
    const std::int64_t rows = index.elements();
    const auto width = static_cast<std::int64_t>(x.bytes()) / x.dim(0) / 4;
    const auto row = [=](std::int64_t i) { return words + order[std::min(i, rows - 1)] * width; };
    const auto read = [&](std::int64_t begin, std::int64_t end) {
      std::uint32_t sums[kLine] = {};
      for (std::int64_t i = begin; i < end; ++i) {
        const std::uint32_t *now = row(i), *next = row(i + 1);
        for (std::int64_t c = 0; c + kLine <= width; c += kLine) {
          __builtin_prefetch(next + c, 0, 2);
          for (std::int64_t w = 0; w < kLine; ++w) sums[w] ^= now[c + w];
        }
        for (std::int64_t c = width / kLine * kLine; c < width; ++c) sums[0] ^= now[c];
      }
      read_ ^= std::accumulate(sums, sums + kLine, 0u);
    };
    const auto read_all = [&] {
      std::vector<std::jthread> readers;
      for (std::int64_t part = 0; part < threads_; ++part) {
        readers.push_back(base::start_thread<std::jthread>("a reader", [&, part] {
          read(rows * part / threads_, rows * (part + 1) / threads_);
        }));
      }
    };
    return samples_of({.rounds = request_.rounds + 1}, read_all).least();
  }

  // Work on the stream up to its end.
  template <typename Work>
  auto until_done(const Work& work) {
    return [this, work] {
      work();
      stream_->synchronize();
    };
  }

  const RowCopiesRequest& request_;
  const std::int64_t hidden_;
  const int threads_;
  std::unique_ptr<tensor::Device> device_;
  tensor::Pool pool_;
  std::unique_ptr<tensor::Stream> stream_;
  std::atomic<std::uint32_t> read_ = 0;  // keeps the compiler from removing the reads
};

}  // namespace

std::vector<RowCopy> bench_row_copies(const RowCopiesRequest& request) {
  std::vector<RowCopy> all;
  const auto total = static_cast<int>(request.hidden.size() * request.threads.size());
  int done = 0;
  for (const std::int64_t hidden : request.hidden) {
    for (const int threads : request.threads) {
      throw_if_stopped(request.stop);
      std::ranges::move(Copies(request, hidden, threads).run(), std::back_inserter(all));
      if (request.progress) request.progress(++done, total);
    }
  }
  return all;
}

}  // namespace weft::measure
