#include "weft/train/guard/faults.h"

#include <bit>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/train/log/gather_texts.h"
#include "weft/train/step.h"

namespace weft::train {
namespace {

using base::text;

std::string name_of(const std::optional<Resumption>& found) {
  return found ? text("step {} ({})", found->manifest.step, found->manifest.checksum) : "none";
}

std::string numbers_of(const StepTotals& totals) {
  const auto shown = [](double x) {
    return std::isnan(x) ? std::string("nan") : text("{:.6g}", x);
  };
  return text("loss {}, gradient norm {}", shown(totals.loss), shown(totals.gradient_norm));
}

bool are_same(const StepTotals& a, const StepTotals& b) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(std::isnan(x) ? NAN : x); };
  return bits(a.loss) == bits(b.loss) && bits(a.gradient_norm) == bits(b.gradient_norm);
}

// Computes the step twice: first without effect, then as training.
Attempt attempt_twice(Engine& engine, const StepInput& input, exec::Tracing tracing) {
  const config::RerunStateMachineConfig& faults = engine.config().rerun_state_machine;
  StepInput rehearsed = input;
  rehearsed.effect = Effect::Nothing;
  rehearsed.snapshot = nullptr;
  const StepTotals first = train_step(engine, rehearsed, exec::Tracing::Off);
  StepInput tried = input;
  tried.fails &= faults.error_injection_type == config::ErrorInjection::PersistentError;
  Attempt attempt{.totals = train_step(engine, tried, tracing), .note = ""};
  attempt.totals.stop_requested |= first.stop_requested;
  attempt.totals.time_is_up |= first.time_is_up;
  attempt.differs = !are_same(first, attempt.totals);
  if (attempt.differs) {
    attempt.note = text(
        "training step {}, computed twice: {}, then {}: the machine does not "
        "repeat itself",
        input.step + 1,
        numbers_of(first),
        numbers_of(attempt.totals));
  }
  return attempt;
}

}  // namespace

Attempt attempt_step(Engine& engine,
                     const Progress& progress,
                     const StepInput& input,
                     exec::Tracing tracing) {
  const config::RerunStateMachineConfig& faults = engine.config().rerun_state_machine;
  StepInput tried = input;
  tried.fails = has_injected_error(engine.config(), progress);
  if (faults.rerun_mode == config::RerunMode::ReportStats) {
    return attempt_twice(engine, tried, tracing);
  }
  Attempt attempt{.totals = train_step(engine, tried, tracing), .note = ""};
  if (is_finite(attempt.totals) || faults.rerun_mode == config::RerunMode::Disabled) return attempt;
  const std::string before = numbers_of(attempt.totals);
  const bool was_told = attempt.totals.stop_requested;
  tried.fails &= faults.error_injection_type == config::ErrorInjection::PersistentError;
  tried.snapshot = nullptr;  // already taken
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

bool has_injected_error(const config::Config& config, const Progress& progress) {
  const std::int64_t rate = config.rerun_state_machine.error_injection_rate;
  const std::int64_t batch = progress.samples() / config.train.global_batch_size + 1;
  return rate > 0 && batch % rate == 0;
}

base::Descriptor take_folder(const std::filesystem::path& folder,
                             const std::function<void(const std::string&)>& log,
                             const std::atomic<bool>* stop) {
  bool is_told = false;
  return checkpoint::lock_folder(folder, checkpoint::kLockPatience, [&] {
    if (!is_told) {
      log(text("another run saves to '{}': this one waits for its end, up to {} s",
               folder.string(),
               checkpoint::kLockPatience.count() / 1000));
    }
    is_told = true;
    return stop == nullptr || !stop->load();
  });
}

bool is_still_newest_choice(Engine& engine, const std::optional<Resumption>& chosen) {
  std::string another;
  if (engine.rank() == 0) {
    const std::string now = name_of(find_resumption(engine.config()));
    if (now != name_of(chosen)) another = now;
  }
  return gather_texts(engine, another).front().empty();
}

void require_one_checkpoint(Engine& engine, const std::optional<Resumption>& found) {
  const std::vector<std::string> all = gather_texts(engine, name_of(found));
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

void go_back(Engine& engine, Progress& progress, Resumption from) {
  const std::int64_t samples = progress.samples() + engine.config().train.global_batch_size;
  from.manifest = checkpoint::read_manifest(from.folder);
  load_checkpoint(engine, progress, from);
  progress.skip_to(samples);
  progress.count_not_finite();
}

}  // namespace weft::train
