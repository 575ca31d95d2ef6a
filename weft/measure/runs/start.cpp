#include "weft/measure/runs/start.h"

#include <chrono>

#include "weft/base/text.h"
#include "weft/plan/tuning/twin.h"
#include "weft/rules/validate.h"
#include "weft/train/trainer.h"

namespace weft::measure {
namespace {

using base::text;

config::Config two_steps(config::Config config, const std::filesystem::path& run_dir) {
  config.train.train_iters = kStartSteps;
  config.train.train_samples.reset();
  config.runtime.backend = config::CommBackend::Fake;
  config.runtime.run_dir = run_dir.string();
  return config;
}

Start failed(std::vector<std::string> why) {
  return {.state = StartState::Failed, .why = std::move(why)};
}

std::vector<std::string> refusals(const rules::Verdict& verdict) {
  std::vector<std::string> all;
  for (const config::Finding& error : verdict.errors) all.push_back(to_text(error));
  return all;
}

// Trains the twin, which lacks the missing parts. nullopt: stopped.
std::optional<Start> run_twin(const StartRequest& request, const rules::Verdict& asked) {
  const plan::Twin twin = plan::twin_of(request.config);
  if (asked.runs() && !twin.given_up.empty()) return failed(twin.given_up);
  const rules::Verdict verdict = rules::validate(two_steps(twin.config, request.run_dir));
  const train::TrainResult result = train::train({.config = verdict.judged.value(),
                                                  .name = {},
                                                  .stop = request.stop,
                                                  .start = [](const train::RunStart&) {},
                                                  .log = [](const std::string&) {},
                                                  .progress = [](const train::StepRecord&) {},
                                                  .overwrite = base::Overwrite::Yes});
  if (result.interrupted && result.steps < kStartSteps) return std::nullopt;
  if (result.steps < kStartSteps) return failed({text("stopped after {} steps", result.steps)});
  Start start;
  for (const rules::Missing& missing : asked.missing) {
    if (missing.part != rules::kNoRoom) start.why.push_back(missing.part);
  }
  if (!start.why.empty()) start.state = StartState::Missing;
  return start;
}

}  // namespace

std::string_view word(StartState state) {
  switch (state) {
    case StartState::Started:
      return "started";
    case StartState::Missing:
      return "missing";
    case StartState::Illegal:
      return "illegal";
    case StartState::Failed:
      return "failed";
  }
  return "";
}

std::optional<Start> try_start(const StartRequest& request) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const rules::Verdict asked = rules::judge(request.config);
  if (!asked.legal()) return Start{.state = StartState::Illegal, .why = refusals(asked)};
  std::optional<Start> start;
  try {
    start = run_twin(request, asked);
  } catch (const std::exception& error) {
    start = failed({error.what()});
  }
  if (start) start->seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return start;
}

}  // namespace weft::measure
