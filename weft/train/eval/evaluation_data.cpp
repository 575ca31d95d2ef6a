#include "weft/train/eval/evaluation_data.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/derive/evaluation_sets.h"

namespace weft::train {
namespace {

constexpr std::uint64_t kSeed = 0;

}  // namespace

std::vector<EvaluationData> open_evaluation_data(const config::Config& config) {
  std::vector<EvaluationData> all;
  if (config.train.eval_interval <= 0) return all;
  std::vector<std::string> complaints;
  for (const derive::EvaluationSet& set : derive::evaluation_sets_of(config.dataset)) {
    const config::DatasetConfig alone{.kind = config.dataset.kind,
                                      .path = set.path,
                                      .extensions = config.dataset.extensions,
                                      .eval_fraction = 0};
    try {
      all.push_back(
          {.name = set.name,
           .dataset =
               data::open_dataset(alone, config.model.seq_length, config.model.vocab_size, kSeed)});
    } catch (const base::ConfigError& error) {
      for (const std::string& complaint : error.complaints()) {
        complaints.push_back(base::text("dataset.valid_data_path: the set '{}': {}",
                                        base::shown(set.name),
                                        complaint));
      }
    }
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return all;
}

}  // namespace weft::train
