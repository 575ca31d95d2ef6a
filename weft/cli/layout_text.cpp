#include "weft/cli/layout_text.h"

#include "weft/base/text.h"
#include "weft/config/pipeline.h"

namespace weft::cli {

std::string layout_text(const config::ModelConfig& model) {
  const std::int64_t pp = model.pipeline_model_parallel_size, vpp = config::virtual_stages(model);
  std::string text;
  if (pp > 1) text += base::text("pp {}, ", pp);
  if (vpp > 1) text += base::text("vpp {}, ", vpp);
  return text + base::text("ep {}", model.expert_model_parallel_size);
}

}  // namespace weft::cli
