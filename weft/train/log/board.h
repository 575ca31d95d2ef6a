// TensorBoard events of rank 0 (logger.tensorboard_dir), with Megatron's tags if Megatron has the
// same value. Each step is one write: a killed run loses at most the current step.
#pragma once

#include <optional>
#include <string>

#include "weft/events/event_file.h"
#include "weft/train/trainer.h"

namespace weft::train {

class Board {
 public:
  // `request` must outlive it. `step`: steps done before a resumed run.
  Board(const TrainRequest& request, std::int64_t step);

  // Adds a step and its evaluations. A full disk must not end a run: writing goes on, and failure()
  // names the loss.
  void keep(const StepRecord& record, const tensor::Pool& memory);
  // Adds the exposure of the traced steps, the last of which is `step`.
  void keep(const trace::Exposure& exposure, std::int64_t step);

  // Resumes from an earlier step; removes later events.
  void go_back(std::int64_t step);

  // Reason why the event file is incomplete; empty: complete.
  std::string failure() const;

 private:
  void append(std::vector<events::Event> all);

  const TrainRequest* request_;
  std::optional<events::EventFile> file_;  // nullopt: could not be reopened
  std::int64_t writes_ = 0, lost_writes_ = 0;
  std::string why_lost_;
};

}  // namespace weft::train
