// Operations of one decoder layer, one by one, at the sizes of `weft bench step`: 1024 rows, hidden
// 512, 8 heads and 2 key/value heads of 64, 16 experts of width 256, top-4, vocabulary 8192.
// `share`: the rate relative to a 2048^3 product measured at the start of the run. `GB/s` counts
// each operand's bytes once.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include "weft/kernels/device.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/pool.h"

namespace weft::kernels {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tag;

constexpr int kThreads = 2;
constexpr std::int64_t kTokens = 1024, kSequence = 512, kHidden = 512, kVocabulary = 8192;
constexpr std::int64_t kHeads = 8, kGroups = 2, kHead = 64;
constexpr std::int64_t kExperts = 16, kTopK = 4, kWidth = 256, kRows = kTokens * kTopK;

// Stream, and tensors with plausible values.
class Bench {
 public:
  Bench()
      : device_(make_cpu_device(kThreads)),
        pool_(*device_),
        stream_(device_->make_stream("bench", tensor::StreamRole::Alone)) {}

  Stream& stream() { return *stream_; }
  Pool& pool() { return pool_; }

  Tensor f32(Shape shape) {
    Tensor x = Tensor::host_visible(pool_, DType::F32, shape, Tag::Activations);
    float* values = x.host<float>();
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      values[i] = static_cast<float>(base::uniform(1, static_cast<std::uint64_t>(i % 4099)) - 0.5);
    }
    return x;
  }
  Tensor i32(Shape shape, std::int64_t below) {
    Tensor x = Tensor::host_visible(pool_, DType::I32, shape, Tag::Activations);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      x.host<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7919 % below);
    }
    return x;
  }
  Tensor i64(Shape shape) { return empty(DType::I64, shape); }
  Tensor empty(DType dtype, Shape shape) {
    return Tensor::host_visible(pool_, dtype, shape, Tag::Activations);
  }

 private:
  std::unique_ptr<tensor::Device> device_;
  Pool pool_;
  std::unique_ptr<Stream> stream_;
};

double seconds_of(const std::function<void()>& work) {
  const std::int64_t begin = tensor::now_ns();
  work();
  return static_cast<double>(tensor::now_ns() - begin) * 1e-9;
}

// Ceiling: best of a few 2048^3 products, in floating-point operations per second.
double ceiling() {
  static const double best = [] {
    Bench bench;
    const Tensor y = bench.f32({2048, 2048}), x = bench.f32({2048, 2048});
    const Tensor w = bench.f32({2048, 2048});
    double seconds = 1e9;
    for (int i = 0; i < 5; ++i) {
      seconds = std::min(seconds, seconds_of([&] { linear_forward(bench.stream(), y, x, w); }));
    }
    return 2.0 * 2048 * 2048 * 2048 / seconds;
  }();
  return best;
}

void run_flops(benchmark::State& state, double flops, const std::function<void()>& work) {
  const double peak = ceiling();
  work();
  double seconds = 0;
  for (auto _ : state) seconds += seconds_of(work);
  const double rate = flops * static_cast<double>(state.iterations()) / seconds;
  state.counters["GFLOP/s"] = rate * 1e-9;
  state.counters["share"] = rate / peak;
}

void run_bytes(benchmark::State& state, double bytes, const std::function<void()>& work) {
  work();
  double seconds = 0;
  for (auto _ : state) seconds += seconds_of(work);
  state.counters["GB/s"] = bytes * static_cast<double>(state.iterations()) / seconds * 1e-9;
}

// (tokens, outputs, inputs)
void linear(benchmark::State& state) {
  Bench b;
  const std::int64_t t = state.range(0), n = state.range(1), k = state.range(2);
  const Tensor y = b.f32({t, n}), x = b.f32({t, k}), w = b.f32({n, k});
  const double flops = 2.0 * static_cast<double>(t * n * k);
  const std::int64_t direction = state.range(3);
  run_flops(state, flops, [&] {
    if (direction == 0) linear_forward(b.stream(), y, x, w);
    if (direction == 1) linear_dgrad(b.stream(), x, y, w);
    if (direction == 2) linear_wgrad(b.stream(), w, y, x, Write::Accumulate);
  });
}

// (outputs, inputs)
void grouped_linear(benchmark::State& state) {
  Bench b;
  const std::int64_t n = state.range(0), k = state.range(1), direction = state.range(2);
  const Tensor y = b.f32({kRows, n}), x = b.f32({kRows, k}), w = b.f32({kExperts, n, k});
  const Tensor rows = b.i64({kExperts});  // uneven, like a router's
  for (std::int64_t e = 0; e < kExperts; ++e) {
    rows.host<std::int64_t>()[e] = kRows / kExperts + (e - 8) * 16 + 8;
  }
  const double flops = 2.0 * static_cast<double>(kRows * n * k);
  run_flops(state, flops, [&] {
    if (direction == 0) grouped_linear_forward(b.stream(), y, x, w, rows);
    if (direction == 1) grouped_linear_dgrad(b.stream(), x, y, w, rows);
    if (direction == 2) grouped_linear_wgrad(b.stream(), w, y, x, rows, Write::Accumulate);
  });
}

// Useful operations only: pairs of a query and a visible key.
double attention_flops(double products) {
  const double pairs = static_cast<double>(kTokens * (kSequence + 1) / 2 * kHeads);
  return 2.0 * products * pairs * static_cast<double>(kHead);
}

const AttentionShape kAttention{.sequence = kSequence,
                                .heads = kHeads,
                                .groups = kGroups,
                                .head_width = kHead,
                                .scale = 0.125f};

void attention_forward_bench(benchmark::State& state) {
  Bench b;
  const Tensor qkv = b.f32({kTokens, (kHeads + 2 * kGroups) * kHead});
  const Tensor q = qkv.columns(0, 512), k = qkv.columns(512, 128), v = qkv.columns(640, 128);
  const Tensor o = b.f32({kTokens, 512}), lse = b.f32({kHeads, kTokens});
  run_flops(state, attention_flops(2), [&] {
    attention_forward(b.stream(), b.pool(), o, lse, q, k, v, kAttention);
  });
}

void attention_dgrad_bench(benchmark::State& state) {
  Bench b;
  const Tensor qkv = b.f32({kTokens, (kHeads + 2 * kGroups) * kHead});
  const Tensor dqkv = b.f32({kTokens, (kHeads + 2 * kGroups) * kHead});
  const Tensor q = qkv.columns(0, 512), k = qkv.columns(512, 128), v = qkv.columns(640, 128);
  const Tensor dq = dqkv.columns(0, 512), dk = dqkv.columns(512, 128);
  const Tensor dv = dqkv.columns(640, 128);
  const Tensor o = b.f32({kTokens, 512}), d_o = b.f32({kTokens, 512});
  const Tensor lse = b.f32({kHeads, kTokens});
  attention_forward(b.stream(), b.pool(), o, lse, q, k, v, kAttention);
  run_flops(state, attention_flops(5), [&] {
    attention_dgrad(b.stream(), b.pool(), dq, dk, dv, d_o, o, lse, q, k, v, kAttention);
  });
}

void norm(benchmark::State& state) {
  Bench b;
  const Tensor x = b.f32({kTokens, kHidden}), y = b.f32({kTokens, kHidden});
  const Tensor dx = b.f32({kTokens, kHidden}), w = b.f32({kHidden}), rstd = b.f32({kTokens, 1});
  const std::int64_t direction = state.range(0);
  const double bytes = static_cast<double>(x.bytes());
  run_bytes(state, bytes * (direction == 1 ? 3 : 2), [&] {
    if (direction == 0) rms_norm_forward(b.stream(), y, rstd, x, w, 1e-6f);
    if (direction == 1) rms_norm_dgrad(b.stream(), dx, y, x, w, rstd);
    if (direction == 2) rms_norm_wgrad(b.stream(), w, y, x, rstd, Write::Accumulate);
  });
}

void rotary(benchmark::State& state) {
  Bench b;
  const Tensor x = b.f32({kTokens, 640}), table = b.f32({kSequence, kHead});
  run_bytes(state, 2.0 * static_cast<double>(x.bytes()), [&] {
    rotary_forward(b.stream(), x, x, table);
  });
}

void swiglu(benchmark::State& state) {
  Bench b;
  const Tensor h = b.f32({kRows, 2 * kWidth}), dh = b.f32({kRows, 2 * kWidth});
  const Tensor y = b.f32({kRows, kWidth}), p = b.f32({kRows}), dp = b.f32({kRows});
  const std::int64_t direction = state.range(0);
  const double bytes = static_cast<double>(y.bytes());
  run_bytes(state, bytes * (direction == 0 ? 3 : 5), [&] {
    if (direction == 0) weighted_swiglu_forward(b.stream(), y, h, p);
    if (direction == 1) weighted_swiglu_dgrad(b.stream(), dh, dp, y, h, p);
  });
}

void cross_entropy(benchmark::State& state) {
  Bench b;
  const Tensor logits = b.f32({kTokens, kVocabulary}), labels = b.i32({kTokens}, kVocabulary);
  const Tensor loss = b.f32({kTokens}), lse = b.f32({kTokens}), sums = b.f32({kTokens, 2});
  const std::int64_t direction = state.range(0);
  const double bytes = static_cast<double>(logits.bytes());
  run_bytes(state, bytes * (direction == 0 ? 1 : 2), [&] {
    if (direction == 0) {
      cross_entropy_sums(b.stream(), sums, logits, labels);
      cross_entropy_forward(b.stream(), loss, lse, sums, labels);
    }
    if (direction == 1) cross_entropy_dgrad(b.stream(), logits, logits, lse, labels, 1e-3f);
  });
}

void router(benchmark::State& state) {
  Bench b;
  const Tensor logits = b.f32({kTokens, kExperts}), p = b.f32({kTokens, kTopK});
  const Tensor experts = b.i32({kTokens, kTopK}, kExperts), row = b.i32({kTokens, kTopK}, 2);
  const Tensor slot = b.i32({kRows}, 2), token = b.i32({kRows}, 2);
  const Tensor counts = b.empty(DType::I64, {kExperts});
  run_bytes(state, static_cast<double>(logits.bytes()), [&] {
    top_k_forward(b.stream(), p, experts, logits, {}, {});
    sort_by_expert(b.stream(), row, slot, token, counts, experts);
  });
}

void gather(benchmark::State& state) {
  Bench b;
  const Tensor x = b.f32({kTokens, kHidden}), y = b.f32({kRows, kHidden});
  const Tensor index = b.i32({kRows}, kTokens);
  run_bytes(state, 2.0 * static_cast<double>(y.bytes()), [&] {
    gather_rows(b.stream(), y, x, index);
  });
}

void sum_of_rows(benchmark::State& state) {
  Bench b;
  const Tensor x = b.f32({kRows, kHidden}), y = b.f32({kTokens, kHidden});
  const Tensor index = b.i32({kTokens, kTopK}, kRows);
  run_bytes(state, static_cast<double>(x.bytes() + y.bytes()), [&] {
    sum_rows(b.stream(), y, x, index);
  });
}

void embedding(benchmark::State& state) {
  Bench b;
  const Tensor x = b.f32({kTokens, kHidden}), table = b.f32({kVocabulary, kHidden});
  const Tensor ids = b.i32({kTokens}, kVocabulary);
  const std::int64_t direction = state.range(0);
  run_bytes(state, static_cast<double>(x.bytes()) * (direction == 0 ? 2 : 3), [&] {
    if (direction == 0) embedding_forward(b.stream(), x, table, ids);
    if (direction == 2) embedding_wgrad(b.stream(), table, x, ids, Write::Accumulate);
  });
}

void add_bench(benchmark::State& state) {
  Bench b;
  const Tensor x = b.f32({kTokens, kHidden}), y = b.f32({kTokens, kHidden});
  run_bytes(state, 3.0 * static_cast<double>(x.bytes()), [&] { add(b.stream(), y, x, y); });
}

constexpr std::int64_t kParameters = 8 << 20;

void adamw_bench(benchmark::State& state) {
  Bench b;
  const Tensor w = b.f32({kParameters}), m = b.f32({kParameters}), v = b.f32({kParameters});
  const Tensor g = b.f32({kParameters});
  zero(b.stream(), v);
  run_bytes(state, 8.0 * static_cast<double>(w.bytes()), [&] {
    adamw(b.stream(),
          w,
          w,
          m,
          v,
          g,
          {.learning_rate = 1e-3f,
           .beta1 = 0.9f,
           .beta2 = 0.95f,
           .epsilon = 1e-8f,
           .weight_decay = 0.1f});
  });
}

void squared_norm_bench(benchmark::State& state) {
  Bench b;
  const Tensor g = b.f32({kParameters}), sum_1 = b.empty(DType::F64, {1});
  run_bytes(state, static_cast<double>(g.bytes()), [&] {
    squared_norm(b.stream(), sum_1, g, Write::Assign);
  });
}

void copy_bench(benchmark::State& state) {
  Bench b;
  const Tensor x = b.f32({kParameters}), y = b.f32({kParameters});
  run_bytes(state, 2.0 * static_cast<double>(x.bytes()), [&] { copy(b.stream(), y, x); });
}

void register_all() {
  const auto ms = [](benchmark::internal::Benchmark* b) {
    b->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
  };
  const auto add_op = [&](const std::string& name, auto body) {
    auto* b = benchmark::RegisterBenchmark(name.c_str(), body);
    ms(b);
    return b;
  };
  add_op("linear/2048^3", linear)->Args({2048, 2048, 2048, 0});
  const char* directions[] = {"forward", "dgrad", "wgrad"};
  for (const std::int64_t d : {0, 1, 2}) {
    const std::string of = directions[d];
    add_op("qkv_" + of, linear)->Args({kTokens, 768, kHidden, d});
    add_op("projection_" + of, linear)->Args({kTokens, kHidden, kHidden, d});
    add_op("router_" + of, linear)->Args({kTokens, kExperts, kHidden, d});
    add_op("head_" + of, linear)->Args({kTokens, kVocabulary, kHidden, d});
    add_op("experts_fc1_" + of, grouped_linear)->Args({2 * kWidth, kHidden, d});
    add_op("experts_fc2_" + of, grouped_linear)->Args({kHidden, kWidth, d});
    add_op("rms_norm_" + of, norm)->Args({d});
  }
  add_op("attention_forward", attention_forward_bench);
  add_op("attention_dgrad", attention_dgrad_bench);
  add_op("rotary", rotary);
  add_op("weighted_swiglu_forward", swiglu)->Args({0});
  add_op("weighted_swiglu_dgrad", swiglu)->Args({1});
  add_op("cross_entropy_forward", cross_entropy)->Args({0});
  add_op("cross_entropy_dgrad", cross_entropy)->Args({1});
  add_op("top_k_and_sort", router);
  add_op("gather_rows", gather);
  add_op("sum_rows", sum_of_rows);
  add_op("embedding_forward", embedding)->Args({0});
  add_op("embedding_wgrad", embedding)->Args({2});
  add_op("add", add_bench);
  add_op("adamw", adamw_bench);
  add_op("squared_norm", squared_norm_bench);
  add_op("copy", copy_bench);
}

}  // namespace
}  // namespace weft::kernels

int main(int argc, char** argv) {
  weft::kernels::prepare_process();
  benchmark::Initialize(&argc, argv);
  weft::kernels::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
