// What a run needs before its first rank starts: everything that can be wrong with its files and
// can be known without a rank. `weft train` starts from it and `weft check` looks at it, so that
// what the one promises the other keeps.
#pragma once

#include <memory>
#include <optional>

#include "weft/checkpoint/huggingface.h"
#include "weft/config/config.h"
#include "weft/data/dataset.h"
#include "weft/train/checkpoints.h"
#include "weft/train/evaluation_data.h"

namespace weft::train {

struct Preparation {
  std::unique_ptr<data::Dataset> dataset;
  std::vector<EvaluationData> evaluation;             // dataset.valid_data_path
  std::optional<checkpoint::HuggingFaceModel> start;  // checkpoint.pretrained_checkpoint
  std::optional<checkpoint::HuggingFaceConfig>
      written;                        // what checkpoint.save_hf says of the model
  std::optional<Resumption> resumed;  // checkpoint.load
};

// Writes nothing. ConfigError with all that does not fit the run; SystemError for a file that is
// not there or cannot be read, where nothing else is wrong. `config` is legal.
Preparation prepare(const config::Config& config);

}  // namespace weft::train
