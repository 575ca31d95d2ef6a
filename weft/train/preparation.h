// Preparation of a run before its first rank starts: every check of its files that needs no rank.
// `weft train` starts from it and `weft check` shows it, so both agree.
#pragma once

#include <memory>
#include <optional>

#include "weft/checkpoint/huggingface/huggingface.h"
#include "weft/config/config.h"
#include "weft/data/dataset.h"
#include "weft/train/eval/evaluation_data.h"
#include "weft/train/saves/checkpoints.h"

namespace weft::train {

struct Preparation {
  std::unique_ptr<data::Dataset> dataset;
  std::vector<EvaluationData> evaluation;                // dataset.valid_data_path
  std::optional<checkpoint::HuggingFaceModel> start;     // checkpoint.pretrained_checkpoint
  std::optional<checkpoint::HuggingFaceConfig> written;  // config.json for checkpoint.save_hf
  std::optional<Resumption> resumed;                     // checkpoint.load
};

// Writes nothing. ConfigError with everything that does not fit the run; otherwise SystemError for
// a missing or unreadable file. `config` must be legal.
Preparation prepare(const config::Config& config);

}  // namespace weft::train
