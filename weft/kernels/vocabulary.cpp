// Embedding and cross entropy.
#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_embedding(const Tensor& x, const Tensor& table, const Tensor& ids) {
  const auto [rows, width] = matrix_shape("x", x);
  check_float("x", x);
  CHECK(matrix_shape("table", table).columns == width,
        "rows of {} and a table {}",
        width,
        table.shape().print());
  check_vector("ids", ids, rows);
  check_dtype("ids", ids, DType::I32);
}

void check_others(const OtherIds& others) {
  CHECK(others.before >= 0 && others.behind >= 0,
        "{} ids before and {} behind",
        others.before,
        others.behind);
}

void check_logits(const Tensor& logits, const Tensor& labels, const OtherIds& others) {
  const auto [rows, vocabulary] = matrix_shape("logits", logits);
  CHECK(vocabulary > 0, "an empty vocabulary");
  check_dtype("logits", logits, DType::F32);
  check_vector("labels", labels, rows);
  check_dtype("labels", labels, DType::I32);
  check_others(others);
}

void check_fp32(std::string_view name, const Tensor& x, std::int64_t elements) {
  check_vector(name, x, elements);
  check_dtype(name, x, DType::F32);
}

}  // namespace

void embedding_forward(Stream& stream, Tensor x, Tensor table, Tensor ids, const OtherIds& others) {
  check_embedding(x, table, ids);
  check_dtype("table", table, x.dtype());
  check_others(others);
  operations_of(stream).embedding_forward(stream,
                                          std::move(x),
                                          std::move(table),
                                          std::move(ids),
                                          others);
}

void embedding_wgrad(Stream& stream,
                     Tensor dtable,
                     Tensor dx,
                     Tensor ids,
                     Write write,
                     const OtherIds& others) {
  check_embedding(dx, dtable, ids);
  check_dtype("dtable", dtable, DType::F32);
  check_others(others);
  operations_of(stream)
      .embedding_wgrad(stream, std::move(dtable), std::move(dx), std::move(ids), write, others);
}

void cross_entropy_sums(Stream& stream,
                        Tensor sums,
                        Tensor logits,
                        Tensor labels,
                        const OtherIds& others) {
  check_logits(logits, labels, others);
  check_matrix("sums", sums, logits.dim(0), 2);
  check_dtype("sums", sums, DType::F32);
  check_contiguous("sums", sums);
  operations_of(stream).cross_entropy_sums(stream,
                                           std::move(sums),
                                           std::move(logits),
                                           std::move(labels),
                                           others);
}

void cross_entropy_forward(Stream& stream, Tensor loss, Tensor lse, Tensor sums, Tensor labels) {
  const std::int64_t tokens = vector_length("labels", labels);
  check_dtype("labels", labels, DType::I32);
  const std::int64_t rows = matrix_shape("sums", sums).rows;
  check_matrix("sums", sums, rows, 2);
  check_dtype("sums", sums, DType::F32);
  check_contiguous("sums", sums);
  CHECK(tokens == 0 ? rows == 0 : rows > 0 && rows % tokens == 0,
        "{} rows of sums for {} labels",
        rows,
        tokens);
  check_fp32("loss", loss, tokens);
  check_fp32("lse", lse, tokens);
  operations_of(stream).cross_entropy_forward(stream,
                                              std::move(loss),
                                              std::move(lse),
                                              std::move(sums),
                                              std::move(labels));
}

void cross_entropy_dgrad(Stream& stream,
                         Tensor dlogits,
                         Tensor logits,
                         Tensor lse,
                         Tensor labels,
                         float scale,
                         const OtherIds& others) {
  check_logits(logits, labels, others);
  check_fp32("lse", lse, logits.dim(0));
  check_matrix("dlogits", dlogits, logits.dim(0), logits.dim(1));
  check_float("dlogits", dlogits);
  CHECK(!dlogits.shares_block(logits) || dlogits.rows_begin_as(logits),
        "dlogits lies over the logits {}, and its rows begin elsewhere than theirs",
        logits.shape().print());
  operations_of(stream).cross_entropy_dgrad(stream,
                                            std::move(dlogits),
                                            std::move(logits),
                                            std::move(lse),
                                            std::move(labels),
                                            scale,
                                            others);
}

}  // namespace weft::kernels
