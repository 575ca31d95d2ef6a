// A training run from a config to a run folder: steps, evaluation, log and metrics.
#pragma once

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/base/files/overwrite.h"
#include "weft/rules/judged_config.h"
#include "weft/tensor/pool.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/train/launch.h"
#include "weft/train/log/metrics.h"

namespace weft::train {

// Facts about a run at its start, besides its config.
struct RunStart {
  std::filesystem::path run_dir;
  std::int64_t step = 0;                // steps done before a resumed run
  std::optional<std::uint64_t> tokens;  // tokens of the data; nullopt: endless
  std::uint64_t train_samples = 0;      // samples of one epoch
  std::uint64_t eval_samples = 0;
  std::uint64_t test_samples = 0;
  // One set of dataset.valid_data_path.
  struct EvaluationSet {
    std::string name;
    std::uint64_t samples = 0;
  };
  std::vector<EvaluationSet> evaluation = {};
  std::string data_remark = {};  // see data::Dataset
};

struct TrainRequest {
  rules::JudgedConfig config;
  std::string name;               // name of the recipe, for the run folder
  const std::atomic<bool>* stop;  // set it to end after the current step
  // Callbacks of rank 0, called on its thread. `start` comes before the first step, `progress`
  // after each step.
  std::function<void(const RunStart& start)> start;
  std::function<void(const std::string& line)> log;
  std::function<void(const StepRecord& record)> progress;
  Process process = {};  // see launch.h
  // Applies to existing files at the run's output paths.
  base::Overwrite overwrite = base::Overwrite::No;
};

struct TrainResult {
  std::int64_t steps = 0;
  double first_loss = 0;
  double final_loss = 0;
  std::optional<double> eval_loss_before;  // before the first step, if a model is continued
  std::optional<double> eval_loss;         // from the last evaluating step, like eval_losses
  std::vector<SetLoss> eval_losses;
  std::optional<double> test_loss;        // nullopt: the run did not reach its last step
  std::vector<ExpertLoads> expert_loads;  // from the last step
  std::optional<std::int64_t> repeated;   // see StepRecord
  std::int64_t not_finite = 0;            // skipped steps
  double tokens_per_second = 0;           // without the first step, which warms up
  std::filesystem::path run_dir;
  // nullopt: no trace, or the run stopped before the traced steps.
  std::optional<std::filesystem::path> trace;
  std::optional<trace::Exposure> exposure;  // over all ranks
  std::vector<trace::Timeline> timelines;   // for the ranks in this process
  bool interrupted = false;
  // Outputs that could not be written, with the reason. Then the run has failed; its other outputs
  // are complete.
  std::vector<std::string> failures;
  bool saved = false;                                   // true if checkpoint.save_hf was written
  std::int64_t first_step = 0;                          // steps done before a resumed run
  std::optional<std::filesystem::path> checkpoint;      // last saved checkpoint
  std::array<std::size_t, tensor::kTags> peak_bytes{};  // on rank 0, by tag
  std::size_t peak_total_bytes = 0;                     // on rank 0, sum over tags at one time
  std::size_t reserved_bytes = 0;  // most memory that rank 0 reserved on its device
  std::size_t snapshot_bytes = 0;  // host memory of rank 0's copy of an asynchronous save
  bool is_finished = false;        // true if the loaded checkpoint already had all steps
  bool is_rank_zero = false;       // false in a process without rank 0
};

// SystemError with step, rank and layer if the loss or the gradient norm stops being finite.
TrainResult train(const TrainRequest& request);

}  // namespace weft::train
