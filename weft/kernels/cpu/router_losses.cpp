// Load-balancing loss and z-loss. Without tokens both are 0.
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

Matrix<float> take_logits(Stream& stream, const Tensor& logits) {
  CHECK(matrix_shape("logits", logits).columns > 0, "no experts");
  check_dtype("logits", logits, DType::F32);
  return matrix<float>(stream, logits);
}

const std::int64_t* take_counts(Stream& stream, const Tensor& counts, std::int64_t experts) {
  check_vector("counts", counts, experts);
  check_dtype("counts", counts, DType::I64);
  return counts.data<std::int64_t>(stream);
}

float* take_loss(Stream& stream, const Tensor& loss) {
  check_vector("loss", loss, 1);
  return loss.data<float>(stream);
}

Matrix<float> take_gradient(Stream& stream, const Tensor& dlogits, const Tensor& logits) {
  check_matrix("dlogits", dlogits, logits.dim(0), logits.dim(1));
  return matrix<float>(stream, dlogits);
}

double balance_factor(const Matrix<float>& logits, std::int64_t k) {
  const auto tokens = static_cast<double>(logits.rows);
  return static_cast<double>(logits.columns) / (static_cast<double>(k) * tokens * tokens);
}

// sum over experts of the token's score times the expert's rows.
double weighted_scores(const float* x, float lse, const std::int64_t* counts, std::int64_t n) {
  double sum = 0;
  for (std::int64_t e = 0; e < n; ++e) {
    sum += static_cast<double>(exp_f32(x[e] - lse)) * static_cast<double>(counts[e]);
  }
  return sum;
}

}  // namespace

void balance_loss_forward(Stream& stream,
                          Tensor loss,
                          Tensor logits,
                          Tensor counts,
                          std::int64_t k) {
  CHECK(k >= 1, "{} experts a token", k);
  const Matrix<float> xs = take_logits(stream, logits);
  const std::int64_t* rows_of = take_counts(stream, counts, xs.columns);
  float* result = take_loss(stream, loss);
  stream.enqueue("balance_loss_forward", WorkClass::Memory, [=](Workers& workers) {
    const auto part = [&](Range rows) {
      double sum = 0;
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const float lse = log_sum_exp(xs.row(t), xs.columns);
        sum += weighted_scores(xs.row(t), lse, rows_of, xs.columns);
      }
      return sum;
    };
    const double sum = parallel_sum(workers, cut_rows(xs.rows, xs.columns), part);
    *result = xs.rows == 0 ? 0.0f : static_cast<float>(balance_factor(xs, k) * sum);
  });
}

// The counts are constants; the scores s carry the gradient:
// dlogits = factor * s_e * (c_e - sum over f of s_f c_f).
void balance_loss_dgrad(Stream& stream,
                        Tensor dlogits,
                        Tensor logits,
                        Tensor counts,
                        std::int64_t k,
                        float scale) {
  CHECK(k >= 1, "{} experts a token", k);
  const Matrix<float> xs = take_logits(stream, logits);
  const Matrix<float> dxs = take_gradient(stream, dlogits, logits);
  const std::int64_t* rows_of = take_counts(stream, counts, xs.columns);
  stream.enqueue("balance_loss_dgrad", WorkClass::Memory, [=](Workers& workers) {
    const double factor = static_cast<double>(scale) * balance_factor(xs, k);
    parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const float* x = xs.row(t);
        const float lse = log_sum_exp(x, xs.columns);
        const double mean = weighted_scores(x, lse, rows_of, xs.columns);
        for (std::int64_t e = 0; e < xs.columns; ++e) {
          const double away = static_cast<double>(rows_of[e]) - mean;
          dxs.row(t)[e] = exp_f32(x[e] - lse) * static_cast<float>(factor * away);
        }
      }
    });
  });
}

void z_loss_forward(Stream& stream, Tensor loss, Tensor logits) {
  const Matrix<float> xs = take_logits(stream, logits);
  float* result = take_loss(stream, loss);
  stream.enqueue("z_loss_forward", WorkClass::Memory, [=](Workers& workers) {
    const auto part = [&](Range rows) {
      double sum = 0;
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const auto lse = static_cast<double>(log_sum_exp(xs.row(t), xs.columns));
        sum += lse * lse;
      }
      return sum;
    };
    const double sum = parallel_sum(workers, cut_rows(xs.rows, xs.columns), part);
    *result = xs.rows == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(xs.rows));
  });
}

void z_loss_dgrad(Stream& stream, Tensor dlogits, Tensor logits, float scale) {
  const Matrix<float> xs = take_logits(stream, logits);
  const Matrix<float> dxs = take_gradient(stream, dlogits, logits);
  stream.enqueue("z_loss_dgrad", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const float* x = xs.row(t);
        const float lse = log_sum_exp(x, xs.columns);
        const float factor = 2.0f * scale * lse / static_cast<float>(xs.rows);
        for (std::int64_t e = 0; e < xs.columns; ++e) {
          dxs.row(t)[e] = factor * exp_f32(x[e] - lse);
        }
      }
    });
  });
}

}  // namespace weft::kernels
