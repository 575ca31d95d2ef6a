#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

void check_logits(const Tensor& logits, const Tensor& lse, const Tensor& labels) {
  const auto [rows, vocabulary] = matrix_shape("logits", logits);
  CHECK(vocabulary > 0, "an empty vocabulary");
  check_dtype("logits", logits, DType::F32);
  check_vector("lse", lse, rows);
  check_dtype("lse", lse, DType::F32);
  check_vector("labels", labels, rows);
  check_dtype("labels", labels, DType::I32);
}

std::int64_t check_label(std::int32_t label, std::int64_t vocabulary) {
  CHECK(label < vocabulary, "label {} of a vocabulary of {}", label, vocabulary);
  return label;
}

// scale * (softmax - one hot); dx may be x.
template <typename T>
void dgrad_row(T* dx, const float* x, std::int64_t n, std::int64_t label, float lse, float scale) {
  const float at_label = scale * (exp_f32(x[label] - lse) - 1.0f);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(dx[i], scale * exp_f32(x[i] - lse));
  store(dx[label], at_label);
}

}  // namespace

void cross_entropy_forward(Stream& stream, Tensor loss, Tensor lse, Tensor logits, Tensor labels) {
  check_logits(logits, lse, labels);
  check_vector("loss", loss, logits.dim(0));
  const Matrix<float> rows_of = matrix<float>(stream, logits);
  const std::int32_t* label_of = labels.data<std::int32_t>(stream);
  float* losses = loss.data<float>(stream);
  float* lses = lse.data<float>(stream);
  stream.enqueue("cross_entropy_forward", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(rows_of.rows, rows_of.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const std::int64_t label = check_label(label_of[t], rows_of.columns);
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
  check_logits(logits, lse, labels);
  check_matrix("dlogits", dlogits, logits.dim(0), logits.dim(1));
  with_float(dlogits.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> to = matrix<T>(stream, dlogits);
    const Matrix<float> from = matrix<float>(stream, logits);
    const std::int32_t* label_of = labels.data<std::int32_t>(stream);
    const float* lses = lse.data<float>(stream);
    stream.enqueue("cross_entropy_dgrad", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(from.rows, from.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          const std::int64_t label = check_label(label_of[t], from.columns);
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

}  // namespace weft::kernels
