// Attention and the operations before it: rotary positions, latent keys.
#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_angles(const Tensor& table) {
  check_dtype("table", table, DType::F32);
  check_contiguous("table", table);
}

void check_turning(const Tensor& y, const Tensor& x, const Tensor& table, const Rotary& rotary) {
  const auto [rows, columns] = matrix_shape("x", x);
  const auto [positions, width] = matrix_shape("table", table);
  check_float("x", x);
  check_matrix("y", y, rows, columns);
  check_dtype("y", y, x.dtype());
  check_angles(table);
  const std::int64_t head = rotary.unturned + width;
  CHECK(width > 0 && width % 2 == 0 && rotary.unturned >= 0 && columns % head == 0,
        "{} columns in heads of {}, the last {} of which turn",
        columns,
        head,
        width);
  CHECK(positions > 0 || rows == 0, "no positions for {} rows", rows);
}

void check_latent_keys(const Tensor& k,
                       const Tensor& v,
                       const Tensor& kv,
                       const Tensor& position,
                       const LatentHeads& shape) {
  const std::int64_t tokens = matrix_shape("kv", kv).rows;
  check_float("kv", kv);
  check_matrix("kv", kv, tokens, shape.heads * (shape.content + shape.value));
  check_matrix("k", k, tokens, shape.heads * (shape.content + shape.position));
  check_matrix("v", v, tokens, shape.heads * shape.value);
  check_matrix("position", position, tokens, shape.position);
  for (const Tensor* x : {&k, &v, &position}) check_dtype("k, v and position", *x, kv.dtype());
}

void check_like_matrix(std::string_view name, const Tensor& dx, const Tensor& x) {
  check_matrix(name, dx, x.dim(0), x.dim(1));
  check_dtype(name, dx, x.dtype());
}

void check_rows(std::string_view name, const SequenceRows& rows) {
  CHECK(rows.each > 0 && rows.begin >= 0 && rows.count > 0 && rows.end() <= rows.each,
        "{}: rows {} to {} of sequences of {}",
        name,
        rows.begin,
        rows.end(),
        rows.each);
}

// Returns the number of sequences.
std::int64_t sequences_of(std::int64_t tokens, const SequenceRows& rows) {
  CHECK(tokens % rows.each == 0, "{} rows in sequences of {}", tokens, rows.each);
  return tokens / rows.each;
}

void check_heads(const AttentionShape& shape) {
  const std::int64_t value_width = shape.value_width.value_or(shape.head_width);
  CHECK(shape.heads > 0 && shape.groups > 0 && shape.head_width > 0 && value_width > 0 &&
            shape.heads % shape.groups == 0,
        "attention of {} heads in {} groups of widths {} and {}",
        shape.heads,
        shape.groups,
        shape.head_width,
        value_width);
  const SequenceRows queries = shape.query_rows(), keys = shape.key_rows();
  check_rows("queries", queries);
  check_rows("keys", keys);
  CHECK(shape.mask == AttentionMask::None || queries.count <= keys.count,
        "{} queries see at most {} keys, and the first of them none",
        queries.count,
        keys.count);
}

void check_output(const Tensor& o, const Tensor& lse, const AttentionShape& shape) {
  const std::int64_t tokens = matrix_shape("o", o).rows;
  sequences_of(tokens, shape.query_rows());
  check_matrix("o", o, tokens, shape.heads * shape.value_width.value_or(shape.head_width));
  check_matrix("lse", lse, shape.heads, tokens);
  check_dtype("lse", lse, DType::F32);
}

void check_attention(const Tensor& o,
                     const Tensor& lse,
                     const Tensor& q,
                     const Tensor& k,
                     const Tensor& v,
                     const AttentionShape& shape) {
  check_heads(shape);
  check_output(o, lse, shape);
  check_float("q", q);
  check_matrix("q", q, o.dim(0), shape.heads * shape.head_width);
  const std::int64_t keys = matrix_shape("k", k).rows;
  CHECK(sequences_of(keys, shape.key_rows()) == sequences_of(q.dim(0), shape.query_rows()),
        "{} rows of queries and {} of keys",
        q.dim(0),
        keys);
  check_matrix("k", k, keys, shape.groups * shape.head_width);
  check_matrix("v", v, keys, shape.groups * shape.value_width.value_or(shape.head_width));
  for (const Tensor* x : {&o, &k, &v}) check_dtype("o, k and v", *x, q.dtype());
}

}  // namespace

void rotary_table(Stream& stream, Tensor table, const RotaryAngles& angles) {
  const std::int64_t width = matrix_shape("table", table).columns;
  CHECK(width % 2 == 0, "heads of {} columns", width);
  check_angles(table);
  operations_of(stream).rotary_table(stream, std::move(table), angles);
}

void rotary_forward(Stream& stream, Tensor y, Tensor x, Tensor table, const Rotary& rotary) {
  check_turning(y, x, table, rotary);
  operations_of(stream).rotary_forward(stream,
                                       std::move(y),
                                       std::move(x),
                                       std::move(table),
                                       rotary);
}

void rotary_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor table, const Rotary& rotary) {
  check_turning(dx, dy, table, rotary);
  operations_of(stream).rotary_dgrad(stream,
                                     std::move(dx),
                                     std::move(dy),
                                     std::move(table),
                                     rotary);
}

void latent_keys_forward(Stream& stream,
                         Tensor k,
                         Tensor v,
                         Tensor kv,
                         Tensor position,
                         const LatentHeads& shape) {
  check_latent_keys(k, v, kv, position, shape);
  operations_of(stream).latent_keys_forward(stream,
                                            std::move(k),
                                            std::move(v),
                                            std::move(kv),
                                            std::move(position),
                                            shape);
}

void latent_keys_dgrad(Stream& stream,
                       Tensor dkv,
                       Tensor dposition,
                       Tensor dk,
                       Tensor dv,
                       const LatentHeads& shape) {
  check_latent_keys(dk, dv, dkv, dposition, shape);
  operations_of(stream).latent_keys_dgrad(stream,
                                          std::move(dkv),
                                          std::move(dposition),
                                          std::move(dk),
                                          std::move(dv),
                                          shape);
}

void attention_forward(Stream& stream,
                       Pool& workspace,
                       Tensor o,
                       Tensor lse,
                       Tensor q,
                       Tensor k,
                       Tensor v,
                       const AttentionShape& shape) {
  check_attention(o, lse, q, k, v, shape);
  operations_of(stream).attention_forward(stream,
                                          workspace,
                                          std::move(o),
                                          std::move(lse),
                                          std::move(q),
                                          std::move(k),
                                          std::move(v),
                                          shape);
}

void attention_dgrad(Stream& stream,
                     Pool& workspace,
                     Tensor dq,
                     Tensor dk,
                     Tensor dv,
                     Tensor dout,
                     Tensor o,
                     Tensor lse,
                     Tensor q,
                     Tensor k,
                     Tensor v,
                     const AttentionShape& shape) {
  check_attention(o, lse, q, k, v, shape);
  check_like_matrix("dq", dq, q);
  check_like_matrix("do", dout, o);
  check_like_matrix("dk", dk, k);
  check_like_matrix("dv", dv, v);
  operations_of(stream).attention_dgrad(stream,
                                        workspace,
                                        std::move(dq),
                                        std::move(dk),
                                        std::move(dv),
                                        std::move(dout),
                                        std::move(o),
                                        std::move(lse),
                                        std::move(q),
                                        std::move(k),
                                        std::move(v),
                                        shape);
}

void attention_merge(Stream& stream,
                     Tensor sum,
                     Tensor lse,
                     Tensor part,
                     Tensor part_lse,
                     const AttentionShape& shape) {
  check_heads(shape);
  check_output(sum, lse, shape);
  check_output(part, part_lse, shape);
  check_matrix("part", part, sum.dim(0), sum.dim(1));
  check_dtype("sum", sum, DType::F32);
  check_float("part", part);
  operations_of(stream).attention_merge(stream,
                                        std::move(sum),
                                        std::move(lse),
                                        std::move(part),
                                        std::move(part_lse),
                                        shape);
}

void accumulate_rows(Stream& stream, Tensor y, Tensor x, const SequenceRows& rows) {
  check_rows("rows", rows);
  const auto [tokens, columns] = matrix_shape("y", y);
  sequences_of(tokens, rows);
  check_matrix("x", x, tokens, columns);
  check_dtype("y", y, DType::F32);
  check_float("x", x);
  operations_of(stream).accumulate_rows(stream, std::move(y), std::move(x), rows);
}

}  // namespace weft::kernels
