#include "weft/derive/logits.h"

namespace weft::derive {

// With tensor parallelism, a token's loss needs sums of all ranks, which arrive after the logits of
// all tokens. An fp32 gradient is as large as the logits and takes their place.
std::int64_t logits_chunk(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const bool has_its_sums = model.tensor_model_parallel_size == 1;
  const bool is_smaller = model.bf16 || model.params_dtype != base::DType::F32;
  return has_its_sums && is_smaller ? config.runtime.logits_chunk : 0;
}

LogitsKept logits_kept(const config::Config& config) {
  return logits_chunk(config) > 0 ? LogitsKept::AsGradient : LogitsKept::Whole;
}

}  // namespace weft::derive
