#include "weft/train/preparation.h"

#include <exception>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_files.h"
#include "weft/derive/derived.h"
#include "weft/events/event.h"
#include "weft/schedule/text/plan_files.h"
#include "weft/train/places.h"
#include "weft/train/weights.h"

namespace weft::train {
namespace {

// Runs checks and collects their errors.
class Complaints {
 public:
  template <typename Check>
  void look(const Check& check) {
    try {
      check();
    } catch (const base::ConfigError& error) {
      complaints_.insert(complaints_.end(), error.complaints().begin(), error.complaints().end());
    } catch (const base::SystemError&) {
      if (!unreadable_) unreadable_ = std::current_exception();
    }
  }

  void raise() {
    if (!complaints_.empty()) throw base::ConfigError(std::move(complaints_));
    if (unreadable_) std::rethrow_exception(unreadable_);
  }

 private:
  std::vector<std::string> complaints_;
  std::exception_ptr unreadable_;
};

void look_at_schedule(const config::Config& config) {
  if (config.runtime.schedule.empty()) return;
  std::vector<schedule::RankPlan> plans =
      schedule::plan_step(config, grid::Grid(derive::layout_of(config)));
  schedule::take_orders_from(config.runtime.schedule, plans);
}

// Early error for a dataset.split without evaluation data; training would meet it hours later.
void require_held_out(const data::Dataset& dataset, const config::Config& config) {
  const bool has_other = !config.dataset.valid_data_path.empty();
  if (config.train.eval_interval <= 0 || has_other) return;
  if (dataset.samples(data::Split::Eval) > 0) return;
  if (!config.dataset.blend_per_split.empty()) {
    throw base::ConfigError(
        base::text("train.eval_interval={}, and dataset.blend_per_split has not one sample of "
                   "model.seq_length={} for validation: name its data in the second list, or set "
                   "train.eval_interval=0",
                   config.train.eval_interval,
                   config.model.seq_length));
  }
  throw base::ConfigError(
      base::text("train.eval_interval={}, and dataset.split='{}' leaves not one sample of "
                 "model.seq_length={} for evaluation{}: give it a larger share, or set "
                 "train.eval_interval=0",
                 config.train.eval_interval,
                 config.dataset.split,
                 config.model.seq_length,
                 config.dataset.blend.empty() ? "" : " in each data set of dataset.blend"));
}

// ConfigError if dataset.path names missing data, so that no kind was found and mock tokens would
// replace it.
void require_found_data(const config::Config& config) {
  const std::string& path = config.dataset.path;
  if (config.dataset.kind != config::DataKind::Mock || path.empty()) return;
  std::error_code ignored;  // a config with dataset.kind=mock and a path means mock
  if (std::filesystem::exists(path, ignored)) return;
  if (std::filesystem::exists(path + ".idx", ignored)) return;
  throw base::ConfigError(
      base::text("dataset.path='{}' is neither a file or folder of text nor the path of .bin and "
                 ".idx: mend the "
                 "path, or say what is there with dataset.kind=text or dataset.kind=indexed",
                 base::shown(path)));
}

// Bytes are token ids only for a model of 256 tokens, never for a model with a tokenizer.
void require_own_tokens(const config::Config& config, const std::optional<Resumption>& resumed) {
  const std::string folder = continued_folder(config, resumed);
  if (folder.empty() || config.dataset.kind != config::DataKind::Text) return;
  if (resumed && has_read_bytes(*resumed)) return;
  const bool has_tokenizer = checkpoint::has_tokenizer(folder);
  if (!has_tokenizer && config.model.vocab_size == 256) return;
  throw base::ConfigError(base::text(
      "dataset.kind=text feeds bytes to the model of '{}', which has {}: make token ids of the "
      "text with the model's own tokenizer and `weft data import`, and name them with dataset.path "
      "(docs/continue.md)",
      folder,
      has_tokenizer ? "a tokenizer" : base::text("{} tokens", config.model.vocab_size)));
}

}  // namespace

Preparation prepare(const config::Config& config) {
  Preparation ready;
  Complaints complaints;
  complaints.look([&] { require_folders(config); });
  complaints.look([&] { require_found_data(config); });
  complaints.look([&] {
    ready.dataset = data::open_dataset(config.dataset,
                                       config.model.seq_length,
                                       config.model.vocab_size,
                                       static_cast<std::uint64_t>(config.rng.seed));
    require_held_out(*ready.dataset, config);
  });
  complaints.look([&] { ready.evaluation = open_evaluation_data(config); });
  complaints.look([&] {
    if (!config.logger.tensorboard_dir.empty()) events::require_protobuf();
  });
  complaints.look([&] {
    const std::string& folder = config.checkpoint.pretrained_checkpoint;
    if (!folder.empty()) ready.start.emplace(folder);
  });
  complaints.look([&] {
    if (config.checkpoint.save_hf.empty()) return;
    ready.written =
        huggingface_config_for(config.model,
                               ready.start ? &ready.start->huggingface_config() : nullptr);
  });
  complaints.look([&] { ready.resumed = find_resumption(config); });
  complaints.look([&] { require_own_tokens(config, ready.resumed); });
  complaints.look([&] { look_at_schedule(config); });
  complaints.raise();
  return ready;
}

}  // namespace weft::train
