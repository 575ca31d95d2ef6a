// Attention in bf16 on a GPU, at shapes that reach cuDNN if it is installed. Compared with the
// CPU's fp32 on equal values; bits are compared between runs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/base/text.h"
#include "weft/kernels/device.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/transfer.h"

namespace weft::kernels {
namespace attention_gpu_test {

using devices::DeviceKind;
using tensor::BFloat16;
using tensor::Deterministic;
using tensor::DType;
using tensor::Tag;
using Floats = std::vector<float>;

// Layout of q, k, v and their gradients: separate, or columns of one matrix.
enum class Columns { Apart, OfOne };
// Yes: cuDNN must compute the shape; it has an engine for all important shapes.
enum class Known { No, Yes };

struct Sizes {
  std::int64_t batch = 1, sequence = 128, heads = 1, groups = 1, width = 64, value_width = 64;
  Columns columns = Columns::Apart;
  Known known = Known::Yes;

  std::int64_t tokens() const { return batch * sequence; }
  std::int64_t queries() const { return heads * width; }
  std::int64_t keys() const { return groups * width; }
  std::int64_t values() const { return groups * value_width; }
  std::int64_t outputs() const { return heads * value_width; }
  AttentionShape shape() const {
    return {.sequence = sequence,
            .heads = heads,
            .groups = groups,
            .head_width = width,
            .scale = 1.0f / std::sqrt(float(width)),
            .value_width = value_width};
  }
};

std::string name_of(const Sizes& s) {
  return base::text("batch{}_sequence{}_heads{}_groups{}_width{}_value{}{}",
                    s.batch,
                    s.sequence,
                    s.heads,
                    s.groups,
                    s.width,
                    s.value_width,
                    s.columns == Columns::OfOne ? "_of_one_matrix" : "");
}

// Normal draws representable in bf16.
Floats draw(std::uint64_t seed, std::int64_t n) {
  Floats values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = float(BFloat16(float(base::normal(seed, i))));
  }
  return values;
}

struct Problem {
  Floats q, k, v, d_o;
  bool operator==(const Problem&) const = default;
};
Problem problem_of(const Sizes& s) {
  return {.q = draw(1, s.tokens() * s.queries()),
          .k = draw(2, s.tokens() * s.keys()),
          .v = draw(3, s.tokens() * s.values()),
          .d_o = draw(4, s.tokens() * s.outputs())};
}
struct Answer {
  Floats o, lse, dq, dk, dv;
};

// Range of rows or columns.
struct Range {
  std::int64_t begin = 0, count = 0;
};
Floats cut(const Floats& x, const Range& rows, std::int64_t row_width, const Range& columns) {
  Floats values;
  for (std::int64_t t = rows.begin; t < rows.begin + rows.count; ++t) {
    const auto begin = x.begin() + t * row_width + columns.begin;
    values.insert(values.end(), begin, begin + columns.count);
  }
  return values;
}

// q, k and v, or their gradients.
struct Heads {
  Tensor whole;  // defined if they are columns of one matrix
  Tensor q, k, v;
};

constexpr std::int64_t kMargin = 8;  // columns left and right, in one matrix
constexpr float kSentinel = 77;

class Attention {
 public:
  Attention(std::unique_ptr<tensor::Device> device, const Sizes& sizes, DType dtype)
      : sizes_(sizes),
        dtype_(dtype),
        device_(std::move(device)),
        pool_(*device_),
        stream_(device_->make_stream("test", tensor::StreamRole::Compute)),
        inputs_(make_heads()),
        gradients_(make_heads()),
        o_(make(sizes.tokens(), sizes.outputs())),
        d_o_(make(sizes.tokens(), sizes.outputs())),
        lse_(pool_, DType::F32, {sizes.heads, sizes.tokens()}, Tag::Activations) {}

  void load(const Problem& problem) {
    write_heads(inputs_, problem.q, problem.k, problem.v);
    tensor::write_floats(*stream_, d_o_, problem.d_o);
    const auto part = [&](std::size_t n) { return Floats(n, kSentinel); };
    write_heads(gradients_, part(problem.q.size()), part(problem.k.size()), part(problem.v.size()));
  }

  void run() {
    attention_forward(*stream_, pool_, o_, lse_, inputs_.q, inputs_.k, inputs_.v, sizes_.shape());
    attention_dgrad(*stream_,
                    pool_,
                    gradients_.q,
                    gradients_.k,
                    gradients_.v,
                    d_o_,
                    o_,
                    lse_,
                    inputs_.q,
                    inputs_.k,
                    inputs_.v,
                    sizes_.shape());
  }

  // Names of the work that run() enqueues.
  std::vector<std::string> work() {
    stream_->start_recording();
    run();
    stream_->synchronize();
    std::vector<std::string> names;
    for (const tensor::WorkSpan& span : stream_->take_recording()) names.emplace_back(span.name);
    return names;
  }

  Answer answer() {
    const Problem gradients = read_heads(gradients_);
    return {.o = tensor::read_floats(*stream_, o_),
            .lse = tensor::read_floats(*stream_, lse_),
            .dq = gradients.q,
            .dk = gradients.k,
            .dv = gradients.v};
  }
  // Inputs after run().
  Problem inputs() {
    Problem problem = read_heads(inputs_);
    problem.d_o = tensor::read_floats(*stream_, d_o_);
    return problem;
  }

  bool margins_untouched() {
    if (!gradients_.whole.defined()) return true;
    const Floats all = tensor::read_floats(*stream_, gradients_.whole);
    const std::int64_t row = gradients_.whole.dim(1);
    for (std::int64_t t = 0; t < sizes_.tokens(); ++t) {
      for (std::int64_t c = 0; c < kMargin; ++c) {
        if (all[std::size_t(t * row + c)] != kSentinel) return false;
        if (all[std::size_t((t + 1) * row - 1 - c)] != kSentinel) return false;
      }
    }
    return true;
  }

  // Fills the memory of the next operation's workspace with other bytes.
  void soil(std::int64_t value) {
    const Tensor dirt(pool_, DType::I32, {16 << 20}, Tag::Workspace);
    fill(*stream_, dirt, value);
  }

 private:
  Tensor make(std::int64_t rows, std::int64_t columns) {
    return {pool_, dtype_, {rows, columns}, Tag::Activations};
  }

  Heads make_heads() {
    const std::int64_t q = sizes_.queries(), k = sizes_.keys(), v = sizes_.values();
    const std::int64_t tokens = sizes_.tokens();
    if (sizes_.columns == Columns::Apart) {
      return {.whole = {}, .q = make(tokens, q), .k = make(tokens, k), .v = make(tokens, v)};
    }
    const Tensor whole = make(tokens, q + k + v + 2 * kMargin);
    return {.whole = whole,
            .q = whole.columns(kMargin, q),
            .k = whole.columns(kMargin + q, k),
            .v = whole.columns(kMargin + q + k, v)};
  }

  void write_heads(const Heads& to, const Floats& q, const Floats& k, const Floats& v) {
    if (!to.whole.defined()) {
      tensor::write_floats(*stream_, to.q, q);
      tensor::write_floats(*stream_, to.k, k);
      tensor::write_floats(*stream_, to.v, v);
      return;
    }
    Floats all;
    const auto append = [&](const Floats& x, std::int64_t row, std::int64_t columns) {
      all.insert(all.end(), x.begin() + row * columns, x.begin() + (row + 1) * columns);
    };
    for (std::int64_t t = 0; t < sizes_.tokens(); ++t) {
      all.insert(all.end(), kMargin, kSentinel);
      append(q, t, sizes_.queries());
      append(k, t, sizes_.keys());
      append(v, t, sizes_.values());
      all.insert(all.end(), kMargin, kSentinel);
    }
    tensor::write_floats(*stream_, to.whole, all);
  }

  Problem read_heads(const Heads& from) {
    if (!from.whole.defined()) {
      return {.q = tensor::read_floats(*stream_, from.q),
              .k = tensor::read_floats(*stream_, from.k),
              .v = tensor::read_floats(*stream_, from.v)};
    }
    const Floats all = tensor::read_floats(*stream_, from.whole);
    const auto columns = [&](std::int64_t first, std::int64_t count) {
      return cut(all, {0, sizes_.tokens()}, from.whole.dim(1), {first, count});
    };
    const std::int64_t q = sizes_.queries(), k = sizes_.keys(), v = sizes_.values();
    return {.q = columns(kMargin, q),
            .k = columns(kMargin + q, k),
            .v = columns(kMargin + q + k, v)};
  }

  const Sizes sizes_;
  const DType dtype_;
  std::unique_ptr<tensor::Device> device_;
  Pool pool_;
  std::unique_ptr<Stream> stream_;
  Heads inputs_, gradients_;
  Tensor o_, d_o_, lse_;
};

Answer answer_of(std::unique_ptr<tensor::Device> device,
                 const Sizes& sizes,
                 DType dtype,
                 const Problem& problem) {
  Attention attention(std::move(device), sizes, dtype);
  attention.load(problem);
  attention.run();
  return attention.answer();
}

void expect_near(const char* name, const Floats& got, const Floats& want, float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  float largest = 0;
  for (const float x : want) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * largest) << name << "[" << i << "]";
  }
}

void expect_near(const Answer& got, const Answer& want) {
  expect_near("o", got.o, want.o, 1.5e-2f);
  expect_near("lse", got.lse, want.lse, 1e-4f);
  expect_near("dq", got.dq, want.dq, 2e-2f);
  expect_near("dk", got.dk, want.dk, 2e-2f);
  expect_near("dv", got.dv, want.dv, 2e-2f);
}

void expect_same_bits(const char* name, const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << name;
}

void expect_same_bits(const Answer& got, const Answer& want) {
  expect_same_bits("o", got.o, want.o);
  expect_same_bits("lse", got.lse, want.lse);
  expect_same_bits("dq", got.dq, want.dq);
  expect_same_bits("dk", got.dk, want.dk);
  expect_same_bits("dv", got.dv, want.dv);
}

class GpuAttention : public testing::TestWithParam<Sizes> {
 protected:
  void SetUp() override {
    if (!devices::why_no_gpu().empty()) GTEST_SKIP() << devices::why_no_gpu();
  }
};

TEST_P(GpuAttention, IsThatOfTheCpu) {
  const Problem problem = problem_of(GetParam());
  const Answer want = answer_of(make_cpu_device(2), GetParam(), DType::F32, problem);
  for (const Deterministic deterministic : {Deterministic::Yes, Deterministic::No}) {
    SCOPED_TRACE(deterministic == Deterministic::Yes ? "deterministic" : "fast");
    Attention gpu(make_cuda_device(0, deterministic), GetParam(), DType::BF16);
    gpu.load(problem);
    gpu.run();
    expect_near(gpu.answer(), want);
    EXPECT_TRUE(gpu.margins_untouched());
    EXPECT_TRUE(gpu.inputs() == problem);
  }
}

TEST_P(GpuAttention, IsOfCudnnWhereThatIsInstalled) {
  const std::string why_not = gpu_report().why_no_cudnn;
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  if (GetParam().known == Known::No) GTEST_SKIP() << "cuDNN may have no engine for this shape";
  for (const Deterministic deterministic : {Deterministic::Yes, Deterministic::No}) {
    Attention gpu(make_cuda_device(0, deterministic), GetParam(), DType::BF16);
    gpu.load(problem_of(GetParam()));
    EXPECT_EQ(gpu.work(),
              (std::vector<std::string>{"attention_forward_cudnn", "attention_dgrad_cudnn"}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes,
    GpuAttention,
    testing::Values(
        Sizes{.batch = 2, .sequence = 128, .heads = 8, .groups = 1},
        Sizes{.batch = 2, .sequence = 256, .heads = 4, .groups = 4},
        Sizes{.batch = 2,
              .sequence = 256,
              .heads = 8,
              .groups = 1,
              .width = 128,
              .value_width = 128},
        Sizes{.batch = 1,
              .sequence = 384,
              .heads = 4,
              .groups = 2,
              .width = 128,
              .value_width = 128},
        Sizes{.batch = 3,
              .sequence = 128,
              .heads = 8,
              .groups = 2,
              .width = 128,
              .value_width = 128,
              .columns = Columns::OfOne},
        Sizes{.batch = 2,
              .sequence = 256,
              .heads = 4,
              .groups = 4,
              .width = 192,
              .value_width = 128},
        Sizes{.batch = 2,
              .sequence = 128,
              .heads = 8,
              .groups = 1,
              .width = 192,
              .value_width = 128,
              .columns = Columns::OfOne},
        Sizes{.batch = 2,
              .heads = 4,
              .groups = 2,
              .width = 8,
              .value_width = 8,
              .known = Known::No},
        Sizes{.batch = 2,
              .heads = 4,
              .groups = 2,
              .width = 40,
              .value_width = 72,
              .known = Known::No},
        Sizes{.batch = 1,
              .heads = 4,
              .groups = 4,
              .width = 256,
              .value_width = 256,
              .known = Known::No},
        // Our own kernel: the last tile of keys is partial.
        Sizes{.batch = 2, .sequence = 192, .heads = 4, .groups = 2, .known = Known::No}),
    [](const auto& param_info) { return name_of(param_info.param); });

class GpuAttentionBits : public testing::Test {
 protected:
  void SetUp() override {
    if (!devices::why_no_gpu().empty()) GTEST_SKIP() << devices::why_no_gpu();
  }
};

TEST_F(GpuAttentionBits, AreTheSameInTwentyRuns) {
  const Sizes sizes{.batch = 2,
                    .sequence = 1024,
                    .heads = 8,
                    .groups = 2,
                    .width = 128,
                    .value_width = 128,
                    .columns = Columns::OfOne};
  Attention gpu(devices::make_device(DeviceKind::Cuda), sizes, DType::BF16);
  gpu.load(problem_of(sizes));
  gpu.run();
  const Answer first = gpu.answer();
  for (int i = 1; i < 20; ++i) {
    SCOPED_TRACE(i);
    gpu.soil(i % 2 == 0 ? 0 : -1);  // zeros, or NaN
    gpu.run();
    expect_same_bits(gpu.answer(), first);
  }
}

// Some sequences of a batch, or some groups with their heads.
struct Share {
  std::int64_t first_sequence = 0, first_group = 0;
  Sizes sizes;
};

// Part of a whole problem that belongs to a share.
class Cut {
 public:
  Cut(const Sizes& whole, const Share& share)
      : whole_(whole),
        part_(share.sizes),
        group_(share.first_group),
        head_(group_ * (whole.heads / whole.groups)),
        tokens_{share.first_sequence * whole.sequence, share.sizes.tokens()} {}

  Floats q(const Floats& x) const {
    return cut(x, tokens_, whole_.queries(), {head_ * whole_.width, part_.queries()});
  }
  Floats k(const Floats& x) const {
    return cut(x, tokens_, whole_.keys(), {group_ * whole_.width, part_.keys()});
  }
  Floats v(const Floats& x) const {
    return cut(x, tokens_, whole_.values(), {group_ * whole_.value_width, part_.values()});
  }
  Floats o(const Floats& x) const {
    return cut(x, tokens_, whole_.outputs(), {head_ * whole_.value_width, part_.outputs()});
  }
  Floats lse(const Floats& x) const {
    return cut(x, {head_, part_.heads}, whole_.tokens(), tokens_);
  }

 private:
  const Sizes &whole_, &part_;
  const std::int64_t group_, head_;
  const Range tokens_;
};

// Call so large that its backward runs in several launches.
void expect_shares(const Sizes& whole, const std::vector<Share>& shares) {
  const auto gpu = [](const Sizes& sizes, const Problem& problem) {
    return answer_of(devices::make_device(DeviceKind::Cuda), sizes, DType::BF16, problem);
  };
  const Problem problem = problem_of(whole);
  const Answer all = gpu(whole, problem);
  for (const Share& share : shares) {
    SCOPED_TRACE(base::text("sequence {}, group {}", share.first_sequence, share.first_group));
    const Cut of(whole, share);
    const Problem part{.q = of.q(problem.q),
                       .k = of.k(problem.k),
                       .v = of.v(problem.v),
                       .d_o = of.o(problem.d_o)};
    expect_near({.o = of.o(all.o),
                 .lse = of.lse(all.lse),
                 .dq = of.q(all.dq),
                 .dk = of.k(all.dk),
                 .dv = of.v(all.dv)},
                gpu(share.sizes, part));
  }
}

TEST_F(GpuAttentionBits, ALargeBatchIsThatOfItsSequences) {
  const Sizes one{.batch = 1, .sequence = 8192, .heads = 8, .groups = 2};
  Sizes two = one;
  two.batch = 2;
  expect_shares(two, {{.first_sequence = 0, .sizes = one}, {.first_sequence = 1, .sizes = one}});
}

TEST_F(GpuAttentionBits, ManyHeadsAreThoseOfTheirGroups) {
  const Sizes one{.batch = 1, .sequence = 8192, .heads = 8, .groups = 1};
  Sizes two = one;
  two.heads = 16;
  two.groups = 2;
  expect_shares(two, {{.first_group = 0, .sizes = one}, {.first_group = 1, .sizes = one}});
}

}  // namespace attention_gpu_test
}  // namespace weft::kernels
