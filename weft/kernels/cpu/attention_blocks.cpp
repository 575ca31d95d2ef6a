#include "weft/kernels/cpu/attention_blocks.h"

namespace weft::kernels::cpu {

AttentionSizes attention_sizes(const Tensor& o,
                               const Tensor& lse,
                               const Tensor& q,
                               const Tensor& k,
                               const Tensor& v,
                               const AttentionShape& shape) {
  CHECK(shape.sequence > 0 && shape.heads > 0 && shape.groups > 0 && shape.head_width > 0 &&
            shape.heads % shape.groups == 0,
        "attention of {} heads in {} groups of width {} over sequences of {}",
        shape.heads,
        shape.groups,
        shape.head_width,
        shape.sequence);
  const std::int64_t tokens = matrix_shape("q", q).rows;
  CHECK(tokens % shape.sequence == 0, "{} rows in sequences of {}", tokens, shape.sequence);
  const std::int64_t query_width = shape.heads * shape.head_width;
  const std::int64_t key_width = shape.groups * shape.head_width;
  check_matrix("q", q, tokens, query_width);
  check_matrix("o", o, tokens, query_width);
  check_matrix("k", k, tokens, key_width);
  check_matrix("v", v, tokens, key_width);
  check_matrix("lse", lse, shape.heads, tokens);
  check_dtype("lse", lse, DType::F32);
  return {.batch = tokens / shape.sequence,
          .sequence = shape.sequence,
          .heads = shape.heads,
          .groups = shape.groups,
          .width = shape.head_width,
          .scale = shape.scale};
}

}  // namespace weft::kernels::cpu
