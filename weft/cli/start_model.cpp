#include "weft/cli/start_model.h"

#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/launcher.h"
#include "weft/cli/output.h"
#include "weft/train/weights.h"

namespace weft::cli {

config::Config with_start(const words::Resolution& run, const config::Config& config) {
  const std::string& start = config.checkpoint.pretrained_checkpoint;
  if (start.empty()) return config;
  refuse_keys(run,
              train::kFolderModelKeys,
              base::text("the model comes from checkpoint.pretrained_checkpoint='{}'", start));
  const checkpoint::HuggingFaceModel model(start);
  warn_of_weights(model);
  return train::with_model_of(config, model);
}

void warn_of_weights(const checkpoint::HuggingFaceModel& model) {
  if (const std::string remark = model.remark(); !remark.empty() && launcher_rank() == 0) {
    print_warning(remark);
  }
}

}  // namespace weft::cli
