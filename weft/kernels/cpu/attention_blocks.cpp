#include "weft/kernels/cpu/attention_blocks.h"

namespace weft::kernels::cpu {

AttentionSizes attention_sizes(const Tensor& o,
                               const Tensor& lse,
                               const Tensor& q,
                               const Tensor& k,
                               const Tensor& v,
                               const AttentionShape& shape) {
  const std::int64_t value_width = shape.value_width.value_or(shape.head_width);
  CHECK(shape.sequence > 0 && shape.heads > 0 && shape.groups > 0 && shape.head_width > 0 &&
            value_width > 0 && shape.heads % shape.groups == 0,
        "attention of {} heads in {} groups of widths {} and {} over sequences of {}",
        shape.heads,
        shape.groups,
        shape.head_width,
        value_width,
        shape.sequence);
  const std::int64_t tokens = matrix_shape("q", q).rows;
  CHECK(tokens % shape.sequence == 0, "{} rows in sequences of {}", tokens, shape.sequence);
  check_matrix("q", q, tokens, shape.heads * shape.head_width);
  check_matrix("o", o, tokens, shape.heads * value_width);
  check_matrix("k", k, tokens, shape.groups * shape.head_width);
  check_matrix("v", v, tokens, shape.groups * value_width);
  check_matrix("lse", lse, shape.heads, tokens);
  check_dtype("lse", lse, DType::F32);
  return {.batch = tokens / shape.sequence,
          .sequence = shape.sequence,
          .heads = shape.heads,
          .groups = shape.groups,
          .width = shape.head_width,
          .value_width = value_width,
          .scale = shape.scale};
}

}  // namespace weft::kernels::cpu
