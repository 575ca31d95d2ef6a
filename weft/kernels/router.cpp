// Router: choice of experts, capacity, counts, noise and losses.
#include <algorithm>

#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_groups(const GroupLimit& groups, std::int64_t k, std::int64_t experts) {
  CHECK(groups.groups >= 1 && experts % groups.groups == 0,
        "{} experts in {} groups",
        experts,
        groups.groups);
  const std::int64_t size = experts / groups.groups;
  CHECK(groups.kept >= 1 && groups.kept <= groups.groups && groups.kept * size >= k,
        "the best {} experts in {} of {} groups of {}",
        k,
        groups.kept,
        groups.groups,
        size);
  CHECK(groups.counted >= 1 && groups.counted <= size,
        "{} experts count of a group of {}",
        groups.counted,
        size);
}

void check_choice(const Tensor& p,
                  const Tensor& experts,
                  const Tensor& logits,
                  const TopK& options) {
  const auto [rows, all] = matrix_shape("logits", logits);
  const std::int64_t k = matrix_shape("p", p).columns;
  CHECK(k >= 1 && k <= all, "the best {} of {} experts", k, all);
  check_groups(options.groups, k, all);
  check_matrix("p", p, rows, k);
  check_matrix("experts", experts, rows, k);
  check_dtype("logits", logits, DType::F32);
  check_dtype("p", p, DType::F32);
  check_dtype("experts", experts, DType::I32);
}

void check_slots(std::string_view name, const Tensor& x, const MatrixShape& slots, DType dtype) {
  check_matrix(name, x, slots.rows, slots.columns);
  check_dtype(name, x, dtype);
  check_contiguous(name, x);
}

void check_router_logits(const Tensor& logits) {
  check_dtype("logits", logits, DType::F32);
  CHECK(matrix_shape("logits", logits).columns > 0, "no experts");
}

void check_run_counts(const Tensor& counts,
                      std::int64_t tokens,
                      std::int64_t experts,
                      const TokenRuns& runs) {
  const std::int64_t all = matrix_shape("counts", counts).rows;
  check_matrix("counts", counts, all, experts);
  check_dtype("counts", counts, DType::I64);
  const std::int64_t last = runs.first + std::max<std::int64_t>(0, tokens - 1);
  CHECK(runs.first >= 0 && runs.length >= 1 && last / runs.length < all,
        "tokens {} to {} in {} runs of {}",
        runs.first,
        last,
        all,
        runs.length);
}

void check_loss(const Tensor& loss) {
  check_vector("loss", loss, 1);
  check_dtype("loss", loss, DType::F32);
}

void check_logit_gradient(const Tensor& dlogits, const Tensor& logits) {
  check_matrix("dlogits", dlogits, logits.dim(0), logits.dim(1));
  check_dtype("dlogits", dlogits, DType::F32);
}

}  // namespace

void top_k_forward(Stream& stream,
                   Tensor p,
                   Tensor experts,
                   Tensor logits,
                   Tensor bias,
                   const TopK& options) {
  check_choice(p, experts, logits, options);
  if (bias.defined()) {
    check_vector("bias", bias, logits.dim(1));
    check_dtype("bias", bias, DType::F32);
  }
  operations_of(stream).top_k_forward(stream,
                                      std::move(p),
                                      std::move(experts),
                                      std::move(logits),
                                      std::move(bias),
                                      options);
}

void probabilities_of_choice(Stream& stream,
                             Tensor p,
                             Tensor experts,
                             Tensor logits,
                             const TopK& options) {
  check_choice(p, experts, logits, options);
  operations_of(stream).probabilities_of_choice(stream,
                                                std::move(p),
                                                std::move(experts),
                                                std::move(logits),
                                                options);
}

void top_k_dgrad(Stream& stream,
                 Tensor dlogits,
                 Tensor dp,
                 Tensor p,
                 Tensor experts,
                 Tensor logits,
                 const TopK& options) {
  check_choice(p, experts, logits, options);
  check_logit_gradient(dlogits, logits);
  check_matrix("dp", dp, p.dim(0), p.dim(1));
  check_dtype("dp", dp, DType::F32);
  operations_of(stream).top_k_dgrad(stream,
                                    std::move(dlogits),
                                    std::move(dp),
                                    std::move(p),
                                    std::move(experts),
                                    std::move(logits),
                                    options);
}

void drop_over_capacity_forward(Stream& stream,
                                Tensor kept_p,
                                Tensor kept_experts,
                                Tensor dropped,
                                Tensor p,
                                Tensor experts,
                                std::int64_t all,
                                std::int64_t capacity,
                                Keep keep) {
  CHECK(capacity >= 0, "a capacity of {}", capacity);
  const MatrixShape slots = matrix_shape("experts", experts);
  check_slots("experts", experts, slots, DType::I32);
  check_slots("p", p, slots, DType::F32);
  check_slots("kept_p", kept_p, slots, DType::F32);
  check_slots("kept_experts", kept_experts, slots, DType::I32);
  check_vector("dropped", dropped, 1);
  check_dtype("dropped", dropped, DType::I64);
  operations_of(stream).drop_over_capacity_forward(stream,
                                                   std::move(kept_p),
                                                   std::move(kept_experts),
                                                   std::move(dropped),
                                                   std::move(p),
                                                   std::move(experts),
                                                   all,
                                                   capacity,
                                                   keep);
}

void drop_over_capacity_dgrad(Stream& stream, Tensor dp, Tensor dkept_p, Tensor kept_experts) {
  const MatrixShape slots = matrix_shape("kept_experts", kept_experts);
  check_slots("kept_experts", kept_experts, slots, DType::I32);
  check_slots("dp", dp, slots, DType::F32);
  check_slots("dkept_p", dkept_p, slots, DType::F32);
  operations_of(stream).drop_over_capacity_dgrad(stream,
                                                 std::move(dp),
                                                 std::move(dkept_p),
                                                 std::move(kept_experts));
}

void count_experts(Stream& stream, Tensor counts, Tensor experts, const TokenRuns& runs) {
  const std::int64_t all = matrix_shape("counts", counts).columns;
  check_dtype("experts", experts, DType::I32);
  check_run_counts(counts, matrix_shape("experts", experts).rows, all, runs);
  operations_of(stream).count_experts(stream, std::move(counts), std::move(experts), runs);
}

void move_bias(Stream& stream, Tensor bias, Tensor counts, float rate) {
  check_dtype("bias", bias, DType::F32);
  check_vector("counts", counts, vector_length("bias", bias));
  check_dtype("counts", counts, DType::I64);
  operations_of(stream).move_bias(stream, std::move(bias), std::move(counts), rate);
}

void jitter(Stream& stream, Tensor y, Tensor x, float epsilon, const Noise& noise) {
  const auto [tokens, width] = matrix_shape("x", x);
  check_float("x", x);
  check_matrix("y", y, tokens, width);
  check_dtype("y", y, x.dtype());
  operations_of(stream).jitter(stream, std::move(y), std::move(x), epsilon, noise);
}

void random_logits(Stream& stream, Tensor logits, const RandomLogits& options) {
  check_router_logits(logits);
  operations_of(stream).random_logits(stream, std::move(logits), options);
}

void balance_loss_forward(Stream& stream,
                          Tensor loss,
                          Tensor logits,
                          Tensor counts,
                          const TokenRuns& runs,
                          Score score) {
  check_router_logits(logits);
  check_run_counts(counts, logits.dim(0), logits.dim(1), runs);
  check_loss(loss);
  operations_of(stream).balance_loss_forward(stream,
                                             std::move(loss),
                                             std::move(logits),
                                             std::move(counts),
                                             runs,
                                             score);
}

void balance_loss_dgrad(Stream& stream,
                        Tensor dlogits,
                        Tensor logits,
                        Tensor counts,
                        const TokenRuns& runs,
                        Score score,
                        float scale) {
  check_router_logits(logits);
  check_logit_gradient(dlogits, logits);
  check_run_counts(counts, logits.dim(0), logits.dim(1), runs);
  operations_of(stream).balance_loss_dgrad(stream,
                                           std::move(dlogits),
                                           std::move(logits),
                                           std::move(counts),
                                           runs,
                                           score,
                                           scale);
}

void z_loss_forward(Stream& stream, Tensor loss, Tensor logits) {
  check_router_logits(logits);
  check_loss(loss);
  operations_of(stream).z_loss_forward(stream, std::move(loss), std::move(logits));
}

void z_loss_dgrad(Stream& stream, Tensor dlogits, Tensor logits, float scale) {
  check_router_logits(logits);
  check_logit_gradient(dlogits, logits);
  operations_of(stream).z_loss_dgrad(stream, std::move(dlogits), std::move(logits), scale);
}

}  // namespace weft::kernels
