#include "weft/kernels/cpu/attention/attention_blocks.h"

namespace weft::kernels::cpu {

AttentionSizes attention_sizes(std::int64_t tokens, const AttentionShape& shape) {
  const std::int64_t value_width = shape.value_width.value_or(shape.head_width);
  return {.batch = tokens / shape.query_rows().each,
          .heads = shape.heads,
          .groups = shape.groups,
          .queries = shape.query_rows(),
          .keys = shape.key_rows(),
          .mask = shape.mask,
          .width = shape.head_width,
          .value_width = value_width,
          .scale = shape.scale};
}

}  // namespace weft::kernels::cpu
