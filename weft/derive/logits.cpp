#include "weft/derive/logits.h"

namespace weft::derive {

// The loss of a token needs the sums of all tensor-parallel ranks, which travel behind the logits
// of all tokens. A gradient in fp32 is as large as the logits, whose place it takes.
std::int64_t logits_chunk(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const bool has_its_sums = model.tensor_model_parallel_size == 1;
  const bool is_smaller = model.bf16 || model.params_dtype != config::Precision::Fp32;
  return has_its_sums && is_smaller ? config.runtime.logits_chunk : 0;
}

LogitsKept logits_kept(const config::Config& config) {
  return logits_chunk(config) > 0 ? LogitsKept::AsGradient : LogitsKept::Whole;
}

}  // namespace weft::derive
