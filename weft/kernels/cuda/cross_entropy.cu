// Cross entropy: a block takes whole rows, once for the largest logit and once for the sum.
#include <limits>

#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/block_sums.h"
#include "weft/kernels/cuda/operations.h"

namespace weft::kernels::cuda {
namespace {

constexpr int kThreads = 512;

// A label that is none of the vocabulary is a fault, and taken for none. By all threads of a block.
__device__ std::int64_t label_in(std::int64_t vocabulary, std::int32_t label, Faults faults) {
  if (label < vocabulary) return label;
  if (threadIdx.x == 0) faults.raise(FaultCode::LabelOutOfRange, label, vocabulary);
  return -1;
}

// The logarithm of the sum of e^x, by all threads of a block.
__device__ float log_sum_exp(const float* x, std::int64_t n) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    largest = x[i] > largest ? x[i] : largest;
  }
  largest = block_max(largest);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    sum += static_cast<double>(expf(x[i] - largest));
  }
  return static_cast<float>(static_cast<double>(largest) + log(block_sum(sum)));
}

__global__ void forward(float* loss,
                        float* lse,
                        Matrix<float> logits,
                        const std::int32_t* labels,
                        Faults faults) {
  for (std::int64_t t = blockIdx.x; t < logits.rows; t += gridDim.x) {
    const std::int64_t label = label_in(logits.columns, labels[t], faults);
    const float sum = log_sum_exp(logits.row(t), logits.columns);
    if (threadIdx.x > 0) continue;
    lse[t] = sum;
    loss[t] = label < 0 ? 0.0f : sum - logits.row(t)[label];
  }
}

// scale * (softmax - one hot). A logit is read by the thread that writes its gradient, so dlogits
// may be logits.
template <typename T>
__global__ void dgrad(Matrix<T> dlogits,
                      Matrix<float> logits,
                      const float* lse,
                      const std::int32_t* labels,
                      float scale,
                      Faults faults) {
  for (std::int64_t t = blockIdx.x; t < logits.rows; t += gridDim.x) {
    const std::int64_t label = label_in(logits.columns, labels[t], faults);
    const float* from = logits.row(t);
    T* to = dlogits.row(t);
    const float log_sum = lse[t];
    for (std::int64_t i = threadIdx.x; i < logits.columns; i += blockDim.x) {
      if (label < 0) {
        store(to[i], 0.0f);
      } else {
        store(to[i], scale * (expf(from[i] - log_sum) - (i == label ? 1.0f : 0.0f)));
      }
    }
  }
}

Grid rows_grid(std::int64_t rows) { return {blocks_for(rows, 1), kThreads}; }

}  // namespace

void cross_entropy_forward(Stream& stream, Tensor loss, Tensor lse, Tensor logits, Tensor labels) {
  float *losses = data<float>(stream, loss), *lses = data<float>(stream, lse);
  const Matrix<float> rows_of = matrix<float>(stream, logits);
  const std::int32_t* label_of = data<std::int32_t>(stream, labels);
  const Faults faults(stream);
  enqueue(stream,
          "cross_entropy_forward",
          WorkClass::Memory,
          rows_grid(rows_of.rows),
          forward,
          losses,
          lses,
          rows_of,
          label_of,
          faults);
}

void cross_entropy_dgrad(Stream& stream,
                         Tensor dlogits,
                         Tensor logits,
                         Tensor lse,
                         Tensor labels,
                         float scale) {
  with_float(dlogits.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> to = matrix<T>(stream, dlogits);
    const Matrix<float> from = matrix<float>(stream, logits);
    const float* lses = data<float>(stream, lse);
    const std::int32_t* label_of = data<std::int32_t>(stream, labels);
    const Faults faults(stream);
    enqueue(stream,
            "cross_entropy_dgrad",
            WorkClass::Memory,
            rows_grid(from.rows),
            dgrad<T>,
            to,
            from,
            lses,
            label_of,
            scale,
            faults);
  });
}

}  // namespace weft::kernels::cuda
