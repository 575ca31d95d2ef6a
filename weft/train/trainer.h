// A training run: steps, evaluation, log and metrics, from a config to a run folder.
#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/base/overwrite.h"
#include "weft/rules/judged_config.h"
#include "weft/tensor/pool.h"
#include "weft/trace/exposure.h"
#include "weft/train/launch.h"
#include "weft/train/metrics.h"

namespace weft::train {

// What a run knows when it begins, beyond its config.
struct RunStart {
  std::filesystem::path run_dir;
  std::int64_t step = 0;                // steps done before, of a run that goes on
  std::optional<std::uint64_t> tokens;  // of the data; none: it never ends
  std::uint64_t train_samples = 0;      // one epoch
  std::uint64_t eval_samples = 0;
  std::uint64_t test_samples = 0;
  // Of each set of dataset.valid_data_path.
  struct EvaluationSet {
    std::string name;
    std::uint64_t samples = 0;
  };
  std::vector<EvaluationSet> evaluation = {};
  std::string data_remark = {};  // see data::Dataset
};

struct TrainRequest {
  rules::JudgedConfig config;
  std::string name;               // of the recipe, for the run folder
  const std::atomic<bool>* stop;  // set to end after the current step
  // What rank 0 has to say; called on its thread. `start` comes before the first step, `progress`
  // after each.
  std::function<void(const RunStart& start)> start;
  std::function<void(const std::string& line)> log;
  std::function<void(const StepRecord& record)> progress;
  Process process = {};                             // see launch.h
  base::Overwrite overwrite = base::Overwrite::No;  // what lies where the run writes
};

struct TrainResult {
  std::int64_t steps = 0;
  double first_loss = 0;
  double final_loss = 0;
  std::optional<double> eval_loss_before;  // the first step, of a model that is continued
  std::optional<double> eval_loss;         // of the last step that evaluated, as the next
  std::vector<SetLoss> eval_losses;
  std::optional<double> test_loss;        // of a run that came to its last step
  std::vector<ExpertLoads> expert_loads;  // of the last step
  std::optional<std::int64_t> repeated;   // see StepRecord
  std::int64_t not_finite = 0;            // steps that changed nothing
  double tokens_per_second = 0;           // without the first step, which warms up
  std::filesystem::path run_dir;
  // With a trace, unless the run was stopped before the steps that are traced.
  std::optional<std::filesystem::path> trace;
  std::optional<trace::Exposure> exposure;  // of all ranks
  std::vector<trace::Timeline> timelines;   // of the ranks of this process
  bool interrupted = false;
  // What could not be written, with the reason: the run has failed, the rest of it is whole.
  std::vector<std::string> failures;
  bool saved = false;                                   // checkpoint.save_hf is written
  std::int64_t first_step = 0;                          // steps done before, of a run that went on
  std::optional<std::filesystem::path> checkpoint;      // the last that was saved
  std::array<std::size_t, tensor::kTags> peak_bytes{};  // of rank 0, by tag
  std::size_t peak_total_bytes = 0;                     // of rank 0, all tags at one time
  std::size_t reserved_bytes = 0;                       // the most rank 0 held of its device
  std::size_t snapshot_bytes = 0;  // host memory of rank 0's copy of an asynchronous save
  bool is_finished = false;        // the checkpoint it went on from had all its steps
  bool is_rank_zero = false;       // false in a process that holds other ranks only
};

// SystemError naming step, rank and layer where the loss or the gradient norm stops being finite.
TrainResult train(const TrainRequest& request);

}  // namespace weft::train
