#include "weft/train/faults.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/train/gather_texts.h"
#include "weft/train/step.h"

namespace weft::train {
namespace {

using base::text;

std::string numbers_of(const StepTotals& totals) {
  const auto shown = [](double x) {
    return std::isnan(x) ? std::string("nan") : text("{:.6g}", x);
  };
  return text("loss {}, gradient norm {}", shown(totals.loss), shown(totals.gradient_norm));
}

}  // namespace

Attempt attempt_step(Engine& engine,
                     const Progress& progress,
                     const StepInput& input,
                     exec::Tracing tracing) {
  const config::RerunStateMachineConfig& faults = engine.config().rerun_state_machine;
  StepInput tried = input;
  tried.fails = is_made_to_fail(engine.config(), progress);
  Attempt attempt{.totals = train_step(engine, tried, tracing), .note = ""};
  if (is_finite(attempt.totals) || faults.rerun_mode == config::RerunMode::Disabled) return attempt;
  const std::string before = numbers_of(attempt.totals);
  const bool was_told = attempt.totals.stop_requested;
  tried.fails &= faults.error_injection_type == config::ErrorInjection::PersistentError;
  tried.snapshot = nullptr;  // it was taken
  attempt.totals = train_step(engine, tried, exec::Tracing::Off);
  attempt.totals.stop_requested |= was_told;
  attempt.note =
      text("training step {}: {}; run again on the same data: {}, {}",
           input.step + 1,
           before,
           numbers_of(attempt.totals),
           is_finite(attempt.totals)
               ? "so that it was an error of the machine: look at its memory and processors"
               : "so that it is the training");
  return attempt;
}

bool is_made_to_fail(const config::Config& config, const Progress& progress) {
  const std::int64_t rate = config.rerun_state_machine.error_injection_rate;
  const std::int64_t batch = progress.samples() / config.train.global_batch_size + 1;
  return rate > 0 && batch % rate == 0;
}

void require_one_checkpoint(Engine& engine, const std::optional<Resumption>& found) {
  const std::vector<std::string> all = gather_texts(
      engine,
      found ? text("step {} ({})", found->manifest.step, found->manifest.checksum) : "none");
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw base::SystemError(text(
        "checkpoint.load: rank {} finds {} in '{}', and rank 0 {}: all ranks must see the same "
        "folder",
        rank,
        all[rank],
        engine.config().checkpoint.load,
        all[0]));
  }
}

void go_back(Engine& engine, Progress& progress, const std::filesystem::path& folder) {
  const std::int64_t samples = progress.samples() + engine.config().train.global_batch_size;
  load_checkpoint(engine,
                  progress,
                  {.folder = folder, .note = "", .manifest = checkpoint::read_manifest(folder)});
  progress.skip_to(samples);
  progress.count_not_finite();
}

}  // namespace weft::train
