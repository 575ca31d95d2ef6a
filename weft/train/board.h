// What rank 0 shows in TensorBoard (logger.tensorboard_dir): every step's events with one write, so
// that a run that is killed loses at most the step it was in.
#pragma once

#include <optional>
#include <string>

#include "weft/events/event_file.h"
#include "weft/train/scalars.h"
#include "weft/train/trainer.h"

namespace weft::train {

class Board {
 public:
  // `request` must outlive it. `step`: the steps done before, of a run that goes on.
  Board(const TrainRequest& request, std::int64_t step);

  // After a step, and what it evaluated. A disk that is full must not end a run: events are tried
  // on, and failure() says what is missing.
  void keep(const StepRecord& record, const tensor::Pool& memory);
  // Of the traced steps, the last of which was `step`.
  void keep(const trace::Exposure& exposure, std::int64_t step);

  // The run goes on from an earlier step, which was its last: what is shown of later ones is cut.
  void go_back(std::int64_t step);

  // Why the event file is not whole; empty: it is.
  std::string failure() const;

 private:
  void append(std::vector<events::Event> all);

  const TrainRequest* request_;
  std::optional<events::EventFile> file_;  // none where one could not be made again
  std::int64_t writes_ = 0, lost_writes_ = 0;
  std::string why_lost_;
};

}  // namespace weft::train
