// Where tokens come in and where they are predicted: embedding and cross entropy.
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

void check_logits(const Tensor& logits, const Tensor& lse, const Tensor& labels) {
  const auto [rows, vocabulary] = matrix_shape("logits", logits);
  CHECK(vocabulary > 0, "an empty vocabulary");
  check_dtype("logits", logits, DType::F32);
  check_vector("lse", lse, rows);
  check_dtype("lse", lse, DType::F32);
  check_vector("labels", labels, rows);
  check_dtype("labels", labels, DType::I32);
}

}  // namespace

void embedding_forward(Stream& stream, Tensor x, Tensor table, Tensor ids) {
  check_embedding(x, table, ids);
  check_dtype("table", table, x.dtype());
  operations_of(stream).embedding_forward(stream, std::move(x), std::move(table), std::move(ids));
}

void embedding_wgrad(Stream& stream, Tensor dtable, Tensor dx, Tensor ids, Write write) {
  check_embedding(dx, dtable, ids);
  check_dtype("dtable", dtable, DType::F32);
  operations_of(stream).embedding_wgrad(stream,
                                        std::move(dtable),
                                        std::move(dx),
                                        std::move(ids),
                                        write);
}

void cross_entropy_forward(Stream& stream, Tensor loss, Tensor lse, Tensor logits, Tensor labels) {
  check_logits(logits, lse, labels);
  check_vector("loss", loss, logits.dim(0));
  check_dtype("loss", loss, DType::F32);
  operations_of(stream).cross_entropy_forward(stream,
                                              std::move(loss),
                                              std::move(lse),
                                              std::move(logits),
                                              std::move(labels));
}

void cross_entropy_dgrad(Stream& stream,
                         Tensor dlogits,
                         Tensor logits,
                         Tensor lse,
                         Tensor labels,
                         float scale) {
  check_logits(logits, lse, labels);
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
                                            scale);
}

}  // namespace weft::kernels
