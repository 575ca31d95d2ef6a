// Load-balancing loss and z-loss. A warp takes a token. Without tokens both are 0.
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/warps.h"
#include "weft/kernels/cuda/router/scores.h"

namespace weft::kernels::cuda {
namespace router_losses_kernels {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;

// Batch of tokens, and the rows of each expert in each of its runs.
struct Batch {
  Matrix<float> logits;
  Matrix<std::int64_t> counts;
  const double* rows_of_run;
  TokenRuns runs;
  Score score;
};

// rows_of_run[g] = the sum of the counts of run g. Whole numbers: their sums do not depend on the
// order.
__global__ void sum_runs(double* rows_of_run, Matrix<std::int64_t> counts) {
  for (std::int64_t run = first_warp(); run < counts.rows; run += warp_step()) {
    double sum = 0;
    for (std::int64_t e = lane(); e < counts.columns; e += kWarp) {
      sum += double(counts.row(run)[e]);
    }
    sum = warp_sum(sum);
    if (lane() == 0) rows_of_run[run] = sum;
  }
}

// Load of each expert: its share of the rows of a token's run, times the number of experts. 1:
// even.
struct Loads {
  const std::int64_t* counts;
  std::int64_t experts;
  double sum;

  __device__ double of(std::int64_t e) const {
    return sum > 0 ? double(counts[e] * experts) / sum : 0.0;
  }
};

__device__ Loads loads_of(const Batch& batch, std::int64_t t) {
  const std::int64_t run = (batch.runs.first + t) / batch.runs.length;
  return {batch.counts.row(run), batch.counts.columns, batch.rows_of_run[run]};
}

// Scores of a token over all experts, scaled to sum 1.
struct Scores {
  Score score;
  float lse = 0;   // softmax
  double sum = 1;  // other scores

  __device__ double scaled(float x) const {
    if (score == Score::Softmax) return double(expf(x - lse));
    return double(own_score(score, x)) / sum;
  }
};

__device__ Scores sum_up(Score score, const float* x, std::int64_t n) {
  if (score == Score::Softmax) return {.score = score, .lse = warp_log_sum_exp(x, n)};
  double sum = 0;
  for (std::int64_t e = lane(); e < n; e += kWarp) sum += double(own_score(score, x[e]));
  return {.score = score, .sum = warp_sum(sum) + double(kLeastSum)};
}

// Sum over experts of the token's score times the expert's load.
__device__ double weighted_scores(const Scores& scores,
                                  const float* x,
                                  const Loads& loads,
                                  std::int64_t n) {
  double sum = 0;
  for (std::int64_t e = lane(); e < n; e += kWarp) sum += scores.scaled(x[e]) * loads.of(e);
  return warp_sum(sum);
}

// parts[b] = the sum over the warps of block b. Each warp brings its own number.
__device__ void write_part(double* parts, double of_warp) {
  const double sum = block_sum(lane() == 0 ? of_warp : 0.0);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void balance_parts(double* parts, Batch batch) {
  const std::int64_t n = batch.logits.columns;
  double sum = 0;
  for (std::int64_t t = first_warp(); t < batch.logits.rows; t += warp_step()) {
    const float* x = batch.logits.row(t);
    sum += weighted_scores(sum_up(batch.score, x, n), x, loads_of(batch, t), n);
  }
  write_part(parts, sum);
}

__global__ void balance_dgrad(Matrix<float> dlogits, Batch batch, float scale) {
  const std::int64_t n = batch.logits.columns;
  const double factor = double(scale) / double(batch.logits.rows);
  for (std::int64_t t = first_warp(); t < batch.logits.rows; t += warp_step()) {
    const float* x = batch.logits.row(t);
    const Loads loads = loads_of(batch, t);
    const Scores scores = sum_up(batch.score, x, n);
    const double mean = weighted_scores(scores, x, loads, n);
    for (std::int64_t e = lane(); e < n; e += kWarp) {
      const double away = factor * (loads.of(e) - mean);
      if (batch.score == Score::Softmax) {
        dlogits.row(t)[e] = expf(x[e] - scores.lse) * float(away);
      } else {
        const float slope = own_slope(batch.score, x[e], own_score(batch.score, x[e]));
        dlogits.row(t)[e] = slope * float(away / scores.sum);
      }
    }
  }
}

__global__ void z_parts(double* parts, Matrix<float> logits) {
  double sum = 0;
  for (std::int64_t t = first_warp(); t < logits.rows; t += warp_step()) {
    const auto lse = double(warp_log_sum_exp(logits.row(t), logits.columns));
    sum += lse * lse;
  }
  write_part(parts, sum);
}

__global__ void z_dgrad(Matrix<float> dlogits, Matrix<float> logits, float scale) {
  for (std::int64_t t = first_warp(); t < logits.rows; t += warp_step()) {
    const float* x = logits.row(t);
    const float lse = warp_log_sum_exp(x, logits.columns);
    const float factor = 2.0f * scale * lse / float(logits.rows);
    for (std::int64_t e = lane(); e < logits.columns; e += kWarp) {
      dlogits.row(t)[e] = factor * expf(x[e] - lse);
    }
  }
}

// Runs in one block.
__global__ void write_mean(float* loss, const double* parts, unsigned n, std::int64_t rows) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) sum += parts[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = rows == 0 ? 0.0f : float(sum / double(rows));
}

unsigned blocks_of(std::int64_t rows) { return blocks_for(rows, kWarps); }

}  // namespace
}  // namespace router_losses_kernels

void balance_loss_forward(Stream& stream,
                          Tensor loss,
                          Tensor logits,
                          Tensor counts,
                          const TokenRuns& runs,
                          Score score) {
  const Matrix<float> xs = matrix<float>(stream, logits);
  const Matrix<std::int64_t> rows_of = matrix<std::int64_t>(stream, counts);
  float* result = data<float>(stream, loss);
  const unsigned blocks = router_losses_kernels::blocks_of(xs.rows);
  double* parts = scratch<double>(stream, blocks + rows_of.rows);
  double* rows_of_run = parts + blocks;
  const router_losses_kernels::Batch batch{xs, rows_of, rows_of_run, runs, score};
  enqueue_all(stream, "balance_loss_forward", WorkClass::Memory, [=](cudaStream_t handle) {
    if (xs.rows > 0) {
      router_losses_kernels::sum_runs<<<router_losses_kernels::blocks_of(rows_of.rows),
                                        router_losses_kernels::kThreads,
                                        0,
                                        handle>>>(rows_of_run, rows_of);
      router_losses_kernels::balance_parts<<<blocks, router_losses_kernels::kThreads, 0, handle>>>(
          parts,
          batch);
    }
    router_losses_kernels::write_mean<<<1, router_losses_kernels::kThreads, 0, handle>>>(result,
                                                                                         parts,
                                                                                         blocks,
                                                                                         xs.rows);
  });
}

// The loads are constants; the scores s, scaled to sum 1, carry the gradient. Softmax: dlogit = s_e
// * (load_e - sum over f of s_f load_f). Other scores r: dr_e is the bracket over the sum of r, and
// dlogit = dr_e times the slope.
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
  double* rows_of_run = scratch<double>(stream, rows_of.rows);
  const router_losses_kernels::Batch batch{xs, rows_of, rows_of_run, runs, score};
  enqueue_all(stream, "balance_loss_dgrad", WorkClass::Memory, [=](cudaStream_t handle) {
    if (xs.rows == 0) return;
    router_losses_kernels::sum_runs<<<router_losses_kernels::blocks_of(rows_of.rows),
                                      router_losses_kernels::kThreads,
                                      0,
                                      handle>>>(rows_of_run, rows_of);
    router_losses_kernels::balance_dgrad<<<router_losses_kernels::blocks_of(xs.rows),
                                           router_losses_kernels::kThreads,
                                           0,
                                           handle>>>(dxs, batch, scale);
  });
}

void z_loss_forward(Stream& stream, Tensor loss, Tensor logits) {
  const Matrix<float> xs = matrix<float>(stream, logits);
  float* result = data<float>(stream, loss);
  const unsigned blocks = router_losses_kernels::blocks_of(xs.rows);
  double* parts = scratch<double>(stream, blocks);
  enqueue_all(stream, "z_loss_forward", WorkClass::Memory, [=](cudaStream_t handle) {
    if (xs.rows > 0)
      router_losses_kernels::z_parts<<<blocks, router_losses_kernels::kThreads, 0, handle>>>(parts,
                                                                                             xs);
    router_losses_kernels::write_mean<<<1, router_losses_kernels::kThreads, 0, handle>>>(result,
                                                                                         parts,
                                                                                         blocks,
                                                                                         xs.rows);
  });
}

void z_loss_dgrad(Stream& stream, Tensor dlogits, Tensor logits, float scale) {
  const Matrix<float> xs = matrix<float>(stream, logits);
  const Matrix<float> dxs = matrix<float>(stream, dlogits);
  enqueue(stream,
          "z_loss_dgrad",
          WorkClass::Memory,
          {router_losses_kernels::blocks_of(xs.rows), router_losses_kernels::kThreads},
          router_losses_kernels::z_dgrad,
          dxs,
          xs,
          scale);
}

}  // namespace weft::kernels::cuda
