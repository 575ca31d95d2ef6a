// Load-balancing loss and z-loss. Both are 0 without tokens.
#include <span>
#include <vector>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/moe/scores.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

// Each expert's share of the rows times the number of experts: 1 if even.
std::vector<double> loads_of(const Matrix<std::int64_t>& counts) {
  std::vector<double> loads;
  for (std::int64_t run = 0; run < counts.rows; ++run) {
    double sum = 0;
    for (std::int64_t e = 0; e < counts.columns; ++e) {
      sum += static_cast<double>(counts.row(run)[e]);
    }
    for (std::int64_t e = 0; e < counts.columns; ++e) {
      const double rows = static_cast<double>(counts.row(run)[e] * counts.columns);
      loads.push_back(sum > 0 ? rows / sum : 0);
    }
  }
  return loads;
}

// A token's scores over all experts, scaled to sum 1.
struct Scores {
  float lse = 0;   // softmax
  double sum = 1;  // sum of own scores
};

Scores sum_up(Score score, const float* x, std::int64_t n) {
  if (score == Score::Softmax) return {.lse = log_sum_exp(x, n)};
  double sum = 0;
  for (std::int64_t e = 0; e < n; ++e) sum += static_cast<double>(own_score(score, x[e]));
  return {.sum = sum + static_cast<double>(kLeastSum)};
}

double scaled_score(Score score, const Scores& scores, float x) {
  if (score == Score::Softmax) return static_cast<double>(exp_f32(x - scores.lse));
  return static_cast<double>(own_score(score, x)) / scores.sum;
}

// Sum over experts of the token's score times the expert's load.
double weighted_scores(Score score,
                       const Scores& scores,
                       std::span<const float> x,
                       const double* load) {
  double sum = 0;
  for (std::size_t e = 0; e < x.size(); ++e) sum += scaled_score(score, scores, x[e]) * load[e];
  return sum;
}

// Weights of a token's scores: the loads of its run.
struct Loads {
  Matrix<float> logits;
  TokenRuns runs;
  std::vector<double> all;

  std::span<const float> token(std::int64_t t) const {
    return {logits.row(t), static_cast<std::size_t>(logits.columns)};
  }
  const double* of(std::int64_t t) const {
    return all.data() + (runs.first + t) / runs.length * logits.columns;
  }
};

}  // namespace

void balance_loss_forward(Stream& stream,
                          Tensor loss,
                          Tensor logits,
                          Tensor counts,
                          const TokenRuns& runs,
                          Score score) {
  const Matrix<float> xs = matrix<float>(stream, logits);
  const Matrix<std::int64_t> rows_of = matrix<std::int64_t>(stream, counts);
  float* result = data<float>(stream, loss);
  enqueue(stream, "balance_loss_forward", WorkClass::Memory, [=](Workers& workers) {
    const Loads loads{xs, runs, loads_of(rows_of)};
    const auto part = [&](Range rows) {
      double sum = 0;
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const Scores scores = sum_up(score, xs.row(t), xs.columns);
        sum += weighted_scores(score, scores, loads.token(t), loads.of(t));
      }
      return sum;
    };
    const double sum = parallel_sum(workers, cut_rows(xs.rows, xs.columns), part);
    *result = xs.rows == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(xs.rows));
  });
}

// The loads are constants; the scores s, scaled to sum 1, carry the gradient. Softmax: dlogit = s_e
// * (load_e - sum over f of s_f load_f). Own scores r: dr_e is the bracket divided by the sum of r,
// and dlogit is dr_e times the slope.
void balance_loss_dgrad(Stream& stream,
                        Tensor dlogits,
                        Tensor logits,
                        Tensor counts,
                        const TokenRuns& runs,
                        Score score,
                        float scale) {
  const Matrix<float> xs = matrix<float>(stream, logits);
  const Matrix<float> dxs = matrix<float>(stream, dlogits);
  const Matrix<std::int64_t> rows_of = matrix<std::int64_t>(stream, counts);
  enqueue(stream, "balance_loss_dgrad", WorkClass::Memory, [=](Workers& workers) {
    const double factor = static_cast<double>(scale) / static_cast<double>(xs.rows);
    const Loads loads{xs, runs, loads_of(rows_of)};
    parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const float* x = xs.row(t);
        const Scores scores = sum_up(score, x, xs.columns);
        const double mean = weighted_scores(score, scores, loads.token(t), loads.of(t));
        for (std::int64_t e = 0; e < xs.columns; ++e) {
          const double away = factor * (loads.of(t)[e] - mean);
          if (score == Score::Softmax) {
            dxs.row(t)[e] = exp_f32(x[e] - scores.lse) * static_cast<float>(away);
          } else {
            const float slope = own_slope(score, x[e], own_score(score, x[e]));
            dxs.row(t)[e] = slope * static_cast<float>(away / scores.sum);
          }
        }
      }
    });
  });
}

void z_loss_forward(Stream& stream, Tensor loss, Tensor logits) {
  const Matrix<float> xs = matrix<float>(stream, logits);
  float* result = data<float>(stream, loss);
  enqueue(stream, "z_loss_forward", WorkClass::Memory, [=](Workers& workers) {
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
  const Matrix<float> xs = matrix<float>(stream, logits);
  const Matrix<float> dxs = matrix<float>(stream, dlogits);
  enqueue(stream, "z_loss_dgrad", WorkClass::Memory, [=](Workers& workers) {
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

}  // namespace weft::kernels::cpu
