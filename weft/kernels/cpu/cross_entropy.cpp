#include <algorithm>
#include <cstring>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/kernels/cpu/work_cut.h"

namespace weft::kernels::cpu {

namespace {

// A label that is none of the vocabulary is a fault, and taken for none.
std::int64_t label_in(std::int64_t vocabulary, std::int32_t label, const Faults& faults) {
  if (label < vocabulary) return label;
  faults.raise(FaultCode::LabelOutOfRange, {label, vocabulary});
  return -1;
}

// scale * (softmax - one hot). dx may begin where x does: logits are copied, as bytes, before
// gradients are written over them, and gradients end where the logits that were copied do, or
// before.
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

void cross_entropy_forward(Stream& stream, Tensor loss, Tensor lse, Tensor logits, Tensor labels) {
  const Matrix<float> rows_of = matrix<float>(stream, logits);
  const std::int32_t* label_of = data<std::int32_t>(stream, labels);
  float* losses = data<float>(stream, loss);
  float* lses = data<float>(stream, lse);
  const Faults faults(stream);
  enqueue(stream, "cross_entropy_forward", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(rows_of.rows, rows_of.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const std::int64_t label = label_in(rows_of.columns, label_of[t], faults);
        lses[t] = log_sum_exp(rows_of.row(t), rows_of.columns);
        losses[t] = label < 0 ? 0.0f : lses[t] - rows_of.row(t)[label];
      }
    });
  });
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
    const std::int32_t* label_of = data<std::int32_t>(stream, labels);
    const float* lses = data<float>(stream, lse);
    const Faults faults(stream);
    enqueue(stream, "cross_entropy_dgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(from.rows, from.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          const std::int64_t label = label_in(from.columns, label_of[t], faults);
          if (label < 0) {
            std::fill_n(to.row(t), to.columns, T(0.0f));
          } else {
            dgrad_row(to.row(t), from.row(t), to.columns, label, lses[t], scale);
          }
        }
      });
    });
  });
}

}  // namespace weft::kernels::cpu
