#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {

namespace {

// A label outside the vocabulary is a fault; its row is ignored.
std::int64_t label_in(std::int64_t vocabulary, std::int32_t label, const Faults& faults) {
  if (label < vocabulary) return label;
  faults.raise(FaultCode::LabelOutOfRange, {label, vocabulary});
  return -1;
}

std::int64_t vocabulary_of(const Matrix<float>& logits, const OtherIds& others) {
  return others.before + logits.columns + others.behind;
}

// Logarithm of the sum of e^x over all parts, from the parts' logarithms.
float join_sums(const Matrix<float>& sums, std::int64_t t, std::int64_t tokens) {
  float largest = -std::numeric_limits<float>::infinity();
  for (std::int64_t row = t; row < sums.rows; row += tokens) {
    largest = std::max(largest, sums.row(row)[0]);
  }
  double sum = 0;
  for (std::int64_t row = t; row < sums.rows; row += tokens) {
    sum += std::exp(static_cast<double>(sums.row(row)[0]) - static_cast<double>(largest));
  }
  return static_cast<float>(static_cast<double>(largest) + std::log(sum));
}

float sum_of_labels_logits(const Matrix<float>& sums, std::int64_t t, std::int64_t tokens) {
  float sum = 0;
  for (std::int64_t row = t; row < sums.rows; row += tokens) sum += sums.row(row)[1];
  return sum;
}

// scale * (softmax - one hot); no hot column if the label is another rank's. dx may begin where x
// does. Logits are copied before gradients are written over them. The gradients end at or before
// the end of the copied logits.
template <typename T>
void dgrad_row(T* dx, const float* x, std::int64_t n, std::int64_t label, float lse, float scale) {
  constexpr std::int64_t kCopied = 1024;
  float logits[kCopied];
  for (std::int64_t begin = 0; begin < n; begin += kCopied) {
    const std::int64_t count = std::min(kCopied, n - begin);
    std::memcpy(logits, x + begin, static_cast<std::size_t>(count) * sizeof(float));
    T* to = dx + begin;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) store(to[i], scale * exp_f32(logits[i] - lse));
    const std::int64_t hot = label - begin;
    if (hot >= 0 && hot < count) store(to[hot], scale * (exp_f32(logits[hot] - lse) - 1.0f));
  }
}

}  // namespace

void cross_entropy_sums(Stream& stream,
                        Tensor sums,
                        Tensor logits,
                        Tensor labels,
                        const OtherIds& others) {
  const Matrix<float> to = matrix<float>(stream, sums);
  const Matrix<float> from = matrix<float>(stream, logits);
  const std::int32_t* label_of = data<std::int32_t>(stream, labels);
  const Faults faults(stream);
  enqueue(stream, "cross_entropy_sums", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(from.rows, from.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const std::int64_t own =
            label_in(vocabulary_of(from, others), label_of[t], faults) - others.before;
        to.row(t)[0] = log_sum_exp(from.row(t), from.columns);
        to.row(t)[1] = own >= 0 && own < from.columns ? from.row(t)[own] : 0.0f;
      }
    });
  });
}

void cross_entropy_forward(Stream& stream, Tensor loss, Tensor lse, Tensor sums, Tensor labels) {
  const std::int64_t tokens = labels.dim(0);
  const Matrix<float> from = matrix<float>(stream, sums);
  const std::int32_t* label_of = data<std::int32_t>(stream, labels);
  float* losses = data<float>(stream, loss);
  float* lses = data<float>(stream, lse);
  enqueue(stream, "cross_entropy_forward", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(tokens, 2), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        lses[t] = join_sums(from, t, tokens);
        losses[t] = label_of[t] < 0 ? 0.0f : lses[t] - sum_of_labels_logits(from, t, tokens);
      }
    });
  });
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
    const std::int32_t* label_of = data<std::int32_t>(stream, labels);
    const float* lses = data<float>(stream, lse);
    const Faults faults(stream);
    enqueue(stream, "cross_entropy_dgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(from.rows, from.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          const std::int64_t label = label_in(vocabulary_of(from, others), label_of[t], faults);
          if (label < 0) {
            std::fill_n(to.row(t), to.columns, T(0.0f));
          } else {
            const std::int64_t own = label - others.before;
            dgrad_row(to.row(t), from.row(t), to.columns, own, lses[t], scale);
          }
        }
      });
    });
  });
}

}  // namespace weft::kernels::cpu
