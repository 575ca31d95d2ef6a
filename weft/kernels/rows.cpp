// Rows of tokens on their way to experts: sorting, counting and moving them.
#include <limits>
#include <tuple>

#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_choices(const Tensor& experts) {
  const auto [tokens, k] = matrix_shape("experts", experts);
  CHECK(k >= 1, "experts is {}", experts.shape().print());
  CHECK(tokens * k <= std::numeric_limits<std::int32_t>::max(),
        "{} rows do not fit int32",
        tokens * k);
  check_dtype("experts", experts, DType::I32);
  check_contiguous("experts", experts);
}

// Checks that y and x have rows of one dtype and width.
void check_same_rows(const Tensor& y, const Tensor& x) {
  check_dtype("y", y, x.dtype());
  const int rank = x.shape().rank();
  CHECK(rank == 1 || rank == 2, "x is {}, should be a matrix or a vector", x.shape().print());
  CHECK(y.shape().rank() == rank && (rank != 2 || y.dim(1) == x.dim(1)),
        "rows of y {} and x {}",
        y.shape().print(),
        x.shape().print());
}

void check_counts(std::string_view name, const Tensor& counts) {
  vector_length(name, counts);
  check_dtype(name, counts, DType::I64);
}

}  // namespace

void choose_shards(Stream& stream,
                   Tensor chosen_p,
                   Tensor chosen,
                   Tensor copy,
                   Tensor p,
                   Tensor experts,
                   const ExpertShards& ranks) {
  check_choices(experts);
  const std::int64_t tokens = experts.dim(0), k = experts.dim(1), n = ranks.shards;
  CHECK(ranks.experts >= 1 && n >= 1, "{} shards of {} experts a rank", n, ranks.experts);
  check_choices(chosen);
  check_matrix("chosen", chosen, tokens, k * n);
  check_matrix("copy", copy, tokens * k, n);
  check_dtype("copy", copy, DType::I32);
  check_contiguous("copy", copy);
  for (const auto& [name, x, columns] : {std::tuple("p", &p, k), {"chosen_p", &chosen_p, k * n}}) {
    check_matrix(name, *x, tokens, columns);
    check_dtype(name, *x, DType::F32);
    check_contiguous(name, *x);
  }
  operations_of(stream).choose_shards(stream,
                                      std::move(chosen_p),
                                      std::move(chosen),
                                      std::move(copy),
                                      std::move(p),
                                      std::move(experts),
                                      ranks);
}

void sort_by_expert(Stream& stream,
                    Tensor row,
                    Tensor slot,
                    Tensor token,
                    Tensor counts,
                    Tensor experts,
                    std::int64_t first,
                    Room room) {
  check_choices(experts);
  const std::int64_t rows = vector_length("slot", slot);
  check_counts("counts", counts);
  check_matrix("row", row, experts.dim(0), experts.dim(1));
  check_vector("token", token, rows);
  check_contiguous("row", row);
  CHECK(room == Room::Packed || rows % counts.dim(0) == 0,
        "{} rows for {} experts",
        rows,
        counts.dim(0));
  operations_of(stream).sort_by_expert(stream,
                                       std::move(row),
                                       std::move(slot),
                                       std::move(token),
                                       std::move(counts),
                                       std::move(experts),
                                       first,
                                       room);
}

void sort_by_group(Stream& stream,
                   Tensor row,
                   Tensor token,
                   Tensor choice,
                   Tensor counts,
                   Tensor experts,
                   const ExpertGroups& groups) {
  check_choices(experts);
  check_counts("counts", counts);
  check_matrix("row", row, experts.dim(0), matrix_shape("row", row).columns);
  check_matrix("choice", choice, vector_length("token", token), experts.dim(1));
  check_contiguous("row", row);
  check_contiguous("choice", choice);
  CHECK(groups.width >= 1, "groups of {} experts", groups.width);
  operations_of(stream).sort_by_group(stream,
                                      std::move(row),
                                      std::move(token),
                                      std::move(choice),
                                      std::move(counts),
                                      std::move(experts),
                                      groups);
}

void count_by_group(Stream& stream,
                    Tensor rows,
                    Tensor choices,
                    Tensor experts,
                    const ExpertGroups& groups) {
  check_choices(experts);
  check_counts("rows", rows);
  check_vector("choices", choices, rows.dim(0));
  check_dtype("choices", choices, DType::I64);
  CHECK(groups.width >= 1, "groups of {} experts", groups.width);
  operations_of(stream).count_by_group(stream,
                                       std::move(rows),
                                       std::move(choices),
                                       std::move(experts),
                                       groups);
}

void gather_choices(Stream& stream, Tensor p_Rk, Tensor p_Tk, Tensor token, Tensor choice) {
  const auto [rows, k] = matrix_shape("choice", choice);
  check_matrix("p_Rk", p_Rk, rows, k);
  check_matrix("p_Tk", p_Tk, matrix_shape("p_Tk", p_Tk).rows, k);
  check_vector("token", token, rows);
  operations_of(stream).gather_choices(stream,
                                       std::move(p_Rk),
                                       std::move(p_Tk),
                                       std::move(token),
                                       std::move(choice));
}

void sum_counts(Stream& stream, Tensor rows, Tensor counts, std::int64_t first) {
  check_counts("rows", rows);
  const std::int64_t end = first + rows.dim(0);
  CHECK(first >= 0 && end <= matrix_shape("counts", counts).columns,
        "columns {} to {} of counts {}",
        first,
        end,
        counts.shape().print());
  operations_of(stream).sum_counts(stream, std::move(rows), std::move(counts), first);
}

void seal_counts(Stream& stream, Tensor counts, std::int64_t member) {
  check_counts("counts", counts);
  operations_of(stream).seal_counts(stream, std::move(counts), member);
}

void open_counts(Stream& stream, Tensor counts) {
  matrix_shape("counts", counts);
  check_dtype("counts", counts, DType::I64);
  operations_of(stream).open_counts(stream, std::move(counts));
}

void plan_hops(Stream& stream, Tensor splits, Tensor overflow, Tensor counts, const Hops& hops) {
  CHECK(hops.per_machine >= 1 && hops.ranks % hops.per_machine == 0 && hops.rank < hops.ranks,
        "rank {} of {}, {} a machine",
        hops.rank,
        hops.ranks,
        hops.per_machine);
  check_matrix("counts", counts, hops.ranks, hops.counts());
  check_vector("splits", splits, hops.splits());
  operations_of(stream).plan_hops(stream,
                                  std::move(splits),
                                  std::move(overflow),
                                  std::move(counts),
                                  hops);
}

void gather_rows(Stream& stream, Tensor y, Tensor x, Tensor index) {
  check_same_rows(y, x);
  check_vector("index", index, y.dim(0));
  check_dtype("index", index, DType::I32);
  operations_of(stream).gather_rows(stream, std::move(y), std::move(x), std::move(index));
}

void sum_rows(Stream& stream, Tensor y, Tensor x, Tensor index, Tensor residual) {
  check_matrix("y", y, matrix_shape("index", index).rows, matrix_shape("x", x).columns);
  check_float("x", x);
  CHECK(y.dtype() == x.dtype() || y.dtype() == DType::F32,
        "sum of {} rows in {}",
        tensor::name_of(x.dtype()),
        tensor::name_of(y.dtype()));
  if (residual.defined()) {
    check_matrix("residual", residual, y.dim(0), y.dim(1));
    check_dtype("residual", residual, x.dtype());
    check_dtype("y", y, x.dtype());
  }
  operations_of(stream).sum_rows(stream,
                                 std::move(y),
                                 std::move(x),
                                 std::move(index),
                                 std::move(residual));
}

void copy_rows(Stream& stream, Tensor y, Tensor x, std::span<const RowBlock> blocks) {
  check_same_rows(y, x);
  const std::int64_t to = y.dim(0), from = x.dim(0);
  for (const RowBlock& block : blocks) {
    CHECK(block.rows >= 0 && block.from >= 0 && block.to >= 0 && block.from <= from - block.rows &&
              block.to <= to - block.rows,
          "block of {} rows from {} of {} to {} of {}",
          block.rows,
          block.from,
          from,
          block.to,
          to);
  }
  operations_of(stream).copy_rows(stream, std::move(y), std::move(x), blocks);
}

}  // namespace weft::kernels
