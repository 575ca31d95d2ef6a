#include "weft/cli/start_model.h"

#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/launcher.h"
#include "weft/cli/output.h"
#include "weft/train/weights.h"

namespace weft::cli {
namespace {

// People type the name that the model has on the hub.
void require_folder(const std::string& start) {
  std::error_code error;
  if (std::filesystem::is_directory(start, error)) return;
  throw base::ConfigError(base::text(
      "checkpoint.pretrained_checkpoint='{}' is no folder: give a folder of this machine that has "
      "config.json and the weights (a model of the Hugging Face hub is downloaded first: "
      "huggingface-cli download ORGANISATION/MODEL --local-dir FOLDER)",
      start));
}

}  // namespace

config::Config with_start(const words::Resolution& run, const config::Config& config) {
  const std::string& start = config.checkpoint.pretrained_checkpoint;
  if (start.empty()) return config;
  refuse_keys(run,
              train::kFolderModelKeys,
              base::text("the model comes from checkpoint.pretrained_checkpoint='{}'", start));
  require_folder(start);
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
