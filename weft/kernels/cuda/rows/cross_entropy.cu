// Cross entropy. A block takes a row, a thread four neighbouring logits at a time. Several such
// loads are in flight before the first is used.
#include <cfloat>
#include <limits>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/block_sums.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/packs.h"

namespace weft::kernels::cuda {
namespace cross_entropy_kernels {
namespace {

using FourFloats = Pack<float, 4>;

constexpr int kThreads = 512;
constexpr int kBlocks = 3;                     // per multiprocessor
constexpr int kAhead = 4;                      // fours that a thread has in flight
constexpr int kTaken = kThreads * kAhead * 4;  // logits per step of a block

// First logit of the j-th four of this thread, of those that begin at `begin`.
__device__ std::int64_t first_of_four(std::int64_t begin, int j) {
  return begin + (j * kThreads + int(threadIdx.x)) * 4;
}

// Loads the four from x[i] on. Past n: -infinity, which adds nothing to a sum of e^x.
template <Access kAccess>
__device__ FourFloats logits_from(const float* x, std::int64_t i, std::int64_t n) {
  if (i + 4 <= n) return read_once<kAccess, 4>(x + i);
  float four[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    four[j] = i + j < n ? x[i + j] : -std::numeric_limits<float>::infinity();
  }
  return packed<float>(four);
}

// Label of a row. A label outside of the vocabulary is a fault, and counts as none. All threads of
// a block call it.
__device__ std::int64_t label_in(std::int64_t vocabulary, std::int32_t label, Faults faults) {
  if (label < vocabulary) return label;
  if (threadIdx.x == 0) faults.raise(FaultCode::LabelOutOfRange, label, vocabulary);
  return -1;
}

// Loads the fours of this thread. If all exist, no test lies between the loads.
template <Access kAccess>
__device__ void take(FourFloats (&fours)[kAhead],
                     const float* x,
                     std::int64_t begin,
                     std::int64_t n) {
  if (begin + kTaken <= n) {
#pragma unroll
    for (int j = 0; j < kAhead; ++j) fours[j] = read_once<kAccess, 4>(x + first_of_four(begin, j));
  } else {
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      fours[j] = logits_from<kAccess>(x, first_of_four(begin, j), n);
    }
  }
}

// Running sum of e^x, in units of e^largest. `largest` is at least the least finite number: no
// difference of infinities arises from logits of -infinity.
struct SumOfExp {
  float largest = -FLT_MAX;
  double sum = 0;

  __device__ void add(const FourFloats (&fours)[kAhead]) {
    float top = largest;
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const FourFloats& x = fours[j];
      top = fmaxf(top, fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3])));
    }
    if (top > largest) {
      sum *= static_cast<double>(expf(largest - top));
      largest = top;
    }
    float more = 0;
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const FourFloats& x = fours[j];
      more += (expf(x[0] - top) + expf(x[1] - top)) + (expf(x[2] - top) + expf(x[3] - top));
    }
    sum += static_cast<double>(more);
  }
};

// Logarithm of the sum of e^x. All threads of a block call it.
template <Access kAccess>
__device__ float log_sum_exp(const float* x, std::int64_t n) {
  SumOfExp own;
  for (std::int64_t begin = 0; begin < n; begin += kTaken) {
    FourFloats fours[kAhead];
    take<kAccess>(fours, x, begin, n);
    own.add(fours);
  }
  const float largest = block_max(own.largest);
  const double sum = block_sum(own.sum * static_cast<double>(expf(own.largest - largest)));
  return static_cast<float>(static_cast<double>(largest) + log(sum));
}

// Ids of the whole vocabulary. This rank's logits begin at `before`.
struct Ids {
  std::int64_t before, all;

  Ids(const Matrix<float>& logits, const OtherIds& others)
      : before(others.before), all(others.before + logits.columns + others.behind) {}
};

template <Access kAccess>
__global__ void __launch_bounds__(kThreads, kBlocks)
    sum_up(float2* sums, Matrix<float> logits, const std::int32_t* labels, Ids ids, Faults faults) {
  const std::int64_t t = blockIdx.x;
  const float* x = logits.row(t);
  const std::int64_t own = label_in(ids.all, labels[t], faults) - ids.before;
  const float of_label = own >= 0 && own < logits.columns ? x[own] : 0.0f;
  const float log_sum = log_sum_exp<kAccess>(x, logits.columns);
  if (threadIdx.x == 0) sums[t] = {log_sum, of_label};
}

// Sums of the parts of a vocabulary, the tokens of one part after those of another.
struct PartSums {
  const float2* sums;
  std::int64_t parts, tokens;

  __device__ float2 of(std::int64_t part, std::int64_t t) const { return sums[part * tokens + t]; }
};

__global__ void join(float* loss, float* lse, PartSums from, const std::int32_t* labels) {
  for (std::int64_t t = first_index(); t < from.tokens; t += index_step()) {
    float largest = from.of(0, t).x, of_label = from.of(0, t).y;
    for (std::int64_t part = 1; part < from.parts; ++part) {
      largest = fmaxf(largest, from.of(part, t).x);
      of_label += from.of(part, t).y;
    }
    double sum = 0;
    for (std::int64_t part = 0; part < from.parts; ++part) {
      sum += exp(static_cast<double>(from.of(part, t).x) - static_cast<double>(largest));
    }
    const float log_sum = static_cast<float>(static_cast<double>(largest) + log(sum));
    lse[t] = log_sum;
    loss[t] = labels[t] < 0 ? 0.0f : log_sum - of_label;
  }
}

// scale * (softmax - one hot).
struct Gradient {
  bool is_labelled;
  std::int64_t hot;  // index of the label, in or outside of this rank's logits
  float log_sum, scale;

  __device__ void put(float (&gradients)[4], const FourFloats& logits, std::int64_t i) const {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float one = i + j == hot ? 1.0f : 0.0f;
      gradients[j] = scale * (expf(logits[j] - log_sum) - one);
    }
  }
};

template <Access kAccess, typename T>
__device__ void write_from(T* to, const float (&four)[4], std::int64_t i, std::int64_t n) {
  if (i + 4 <= n) return write_past_caches<kAccess>(to + i, four);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (i + j < n) store(to[i + j], four[j]);
  }
}

// Gradient of the logits; a row of dlogits may begin where the logits' row does. A thread then
// writes fp32 gradients where it has read. bf16 gradients lie where the block has read, now or
// before: the block synchronises between.
template <Access kAccess, typename T>
__global__ void __launch_bounds__(kThreads, kBlocks) dgrad(Matrix<T> dlogits,
                                                           Matrix<float> logits,
                                                           const float* lse,
                                                           const std::int32_t* labels,
                                                           float scale,
                                                           Ids ids,
                                                           Faults faults) {
  const std::int64_t t = blockIdx.x, n = logits.columns;
  const float* from = logits.row(t);
  T* to = dlogits.row(t);
  const std::int64_t label = label_in(ids.all, labels[t], faults);
  const Gradient gradient{label >= 0, label - ids.before, lse[t], scale};
  for (std::int64_t begin = 0; begin < n; begin += kTaken) {
    float gradients[kAhead][4] = {};
    if (gradient.is_labelled) {
      FourFloats fours[kAhead];
      take<kAccess>(fours, from, begin, n);
      if constexpr (sizeof(T) < sizeof(float)) __syncthreads();
#pragma unroll
      for (int j = 0; j < kAhead; ++j) {
        gradient.put(gradients[j], fours[j], first_of_four(begin, j));
      }
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      write_from<kAccess>(to, gradients[j], first_of_four(begin, j), n);
    }
  }
}

Grid rows_grid(std::int64_t rows) { return {static_cast<unsigned>(rows), kThreads}; }

}  // namespace
}  // namespace cross_entropy_kernels

void cross_entropy_sums(Stream& stream,
                        Tensor sums,
                        Tensor logits,
                        Tensor labels,
                        const OtherIds& others) {
  auto* to = reinterpret_cast<float2*>(data<float>(stream, sums));
  const Matrix<float> rows_of = matrix<float>(stream, logits);
  const std::int32_t* label_of = data<std::int32_t>(stream, labels);
  const Faults faults(stream);
  enqueue(stream,
          "cross_entropy_sums",
          WorkClass::Memory,
          cross_entropy_kernels::rows_grid(rows_of.rows),
          rows_start_packs(rows_of) ? cross_entropy_kernels::sum_up<Access::Packs>
                                    : cross_entropy_kernels::sum_up<Access::Elements>,
          to,
          rows_of,
          label_of,
          cross_entropy_kernels::Ids(rows_of, others),
          faults);
}

void cross_entropy_forward(Stream& stream, Tensor loss, Tensor lse, Tensor sums, Tensor labels) {
  float *losses = data<float>(stream, loss), *lses = data<float>(stream, lse);
  const auto* from = reinterpret_cast<const float2*>(data<float>(stream, sums));
  const std::int32_t* label_of = data<std::int32_t>(stream, labels);
  const std::int64_t tokens = labels.dim(0), parts = tokens == 0 ? 0 : sums.dim(0) / tokens;
  constexpr int kJoining = 256;
  enqueue(stream,
          "cross_entropy_forward",
          WorkClass::Memory,
          Grid{blocks_for(tokens, kJoining), kJoining},
          cross_entropy_kernels::join,
          losses,
          lses,
          cross_entropy_kernels::PartSums{from, parts, tokens},
          label_of);
}

void cross_entropy_dgrad(Stream& stream,
                         Tensor dlogits,
                         Tensor logits,
                         Tensor lse,
                         Tensor labels,
                         float scale,
                         const OtherIds& others) {
  with_float(dlogits.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> to = matrix<T>(stream, dlogits);
    const Matrix<float> from = matrix<float>(stream, logits);
    const float* lses = data<float>(stream, lse);
    const std::int32_t* label_of = data<std::int32_t>(stream, labels);
    const Faults faults(stream);
    const bool whole = rows_start_packs(to, 4) && rows_start_packs(from);
    enqueue(stream,
            "cross_entropy_dgrad",
            WorkClass::Memory,
            cross_entropy_kernels::rows_grid(from.rows),
            whole ? cross_entropy_kernels::dgrad<Access::Packs, T>
                  : cross_entropy_kernels::dgrad<Access::Elements, T>,
            to,
            from,
            lses,
            label_of,
            scale,
            cross_entropy_kernels::Ids(from, others),
            faults);
  });
}

}  // namespace weft::kernels::cuda
