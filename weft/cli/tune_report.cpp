#include "weft/cli/tune_report.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/cli/machine.h"

namespace weft::cli {
namespace {

using base::text;
using measure::Trial;
using measure::TrialEnd;
using measure::TuningEnd;

const char* word(TrialEnd end) {
  switch (end) {
    case TrialEnd::Kept:
      return "kept";
    case TrialEnd::Reverted:
      return "reverted";
    case TrialEnd::Refused:
      return "refused";
    case TrialEnd::NotTried:
      return "not tried";
    case TrialEnd::Failed:
      return "failed";
  }
  UNREACHABLE("end {}", static_cast<int>(end));
}

const char* word(TuningEnd end) {
  switch (end) {
    case TuningEnd::NothingLeft:
      return "nothing left";
    case TuningEnd::MostTrials:
      return "most trials";
    case TuningEnd::Interrupted:
      return "interrupted";
  }
  UNREACHABLE("end {}", static_cast<int>(end));
}

bool is_measured(const Trial& trial) {
  return trial.end == TrialEnd::Kept || trial.end == TrialEnd::Reverted;
}

std::string predicted_text(const Trial& trial) {
  return trial.predicted_ms ? text("{:.2f}", *trial.predicted_ms) : "";
}

base::Json trial_json(const Trial& trial) {
  base::Json json{{"change", trial.change},
                  {"predicted_ms", nullptr},
                  {"step_ms", nullptr},
                  {"kept", trial.end == TrialEnd::Kept},
                  {"end", word(trial.end)},
                  {"why", trial.why}};
  if (trial.predicted_ms) json["predicted_ms"] = *trial.predicted_ms;
  if (!is_measured(trial)) return json;
  json["step_ms"] = trial.step_ms;
  json["current_ms"] = trial.current_ms;
  json["noise_ms"] = trial.noise_ms;
  return json;
}

constexpr std::size_t kMostUntried = 6;

// "3 changes were not tried: a=1; b=2; c=3"
std::string untried_text(const std::vector<std::string>& untried) {
  if (untried.empty()) return "nothing was left to try";
  const std::size_t shown = std::min(untried.size(), kMostUntried);
  const std::vector<std::string> first(untried.begin(),
                                       untried.begin() + static_cast<std::ptrdiff_t>(shown));
  const std::string more =
      shown < untried.size() ? text("; and {} more", untried.size() - shown) : std::string();
  const auto count = std::ssize(untried);
  return text("{} {} not tried beside this setting: {}{}",
              base::counted(count, "change"),
              count == 1 ? "was" : "were",
              fmt::join(first, "; "),
              more);
}

// Why it ended before it knew that no change pays; empty where it did not.
std::string end_text(const TuneReport& report) {
  const measure::Tuning& tuning = report.tuning;
  switch (tuning.end) {
    case TuningEnd::NothingLeft:
      return "";
    case TuningEnd::MostTrials:
      return text("ended by --trials={}: {}\n",
                  report.request.most_trials,
                  untried_text(tuning.untried));
    case TuningEnd::Interrupted:
      return text("stopped before the end, so this is no verdict: {}\n",
                  untried_text(tuning.untried));
  }
  UNREACHABLE("end {}", static_cast<int>(tuning.end));
}

std::string gains_text(const TuneReport& report) {
  const measure::Tuning& tuning = report.tuning;
  std::string changes;
  for (const Trial& trial : tuning.trials) {
    if (trial.end == TrialEnd::Kept) changes += text("  {}\n", trial.change);
  }
  if (!changes.empty()) {
    return text(
        "{:.2f} times as fast, as measured in turn: {:.2f} ms a step instead of {:.2f} ms, "
        "with\n{}",
        tuning.gain,
        tuning.best_ms,
        tuning.best_ms * tuning.gain,
        changes);
  }
  if (tuning.best_ms == 0) return "nothing was measured\n";
  const auto measured = std::ranges::count_if(tuning.trials, is_measured);
  switch (tuning.end) {
    case TuningEnd::NothingLeft:
      return text("no change pays: {:.2f} ms a step\n", tuning.best_ms);
    case TuningEnd::MostTrials:
    case TuningEnd::Interrupted:
      return text("{:.2f} ms a step; none of the {} measured so far is kept\n",
                  tuning.best_ms,
                  base::counted(measured, "change"));
  }
  UNREACHABLE("end {}", static_cast<int>(tuning.end));
}

std::string summary(const TuneReport& report) { return gains_text(report) + end_text(report); }

std::string contract(const TuneReport& report) {
  const measure::TuneRequest& request = report.request;
  return text(
      "Model, data, global batch, numerics and layout stay. A trial is {} of each of two settings, "
      "in turn, {} steps each; {} are timed. A change is kept where it is faster by more than "
      "three "
      "standard errors. How many times as fast is the product of what each kept change gained "
      "beside the setting before it.",
      base::counted(request.repeats, "run"),
      request.steps,
      measure::describe(request.window));
}

}  // namespace

std::string to_line(const Trial& trial) {
  if (!is_measured(trial)) {
    return text("{:<9} {}: {}", word(trial.end), trial.change, trial.why);
  }
  return text("{:<9} {:.2f} -> {:.2f} ms (noise {:.2f}, predicted {})  {}",
              word(trial.end),
              trial.current_ms,
              trial.step_ms,
              trial.noise_ms,
              predicted_text(trial),
              trial.change);
}

std::string to_text(const TuneReport& report) {
  std::string all = summary(report);
  all += text("recipe    {}\n", report.recipe.string());
  all += text("trials    {}\n", (report.recipe.parent_path() / "result.md").string());
  return all;
}

std::string to_markdown(const TuneReport& report) {
  std::string page = text("# weft tune {}\n\n{}\n{}\n\n{}\n",
                          report.name,
                          summary(report),
                          contract(report),
                          to_text(this_machine()));
  page +=
      "\n| change | before ms | after ms | predicted ms | noise ms | end |\n"
      "|---|---:|---:|---:|---:|---|\n";
  for (const Trial& trial : report.tuning.trials) {
    const auto number = [&](double value) {
      return is_measured(trial) ? text("{:.2f}", value) : std::string();
    };
    page += text("| {} | {} | {} | {} | {} | {}{} |\n",
                 trial.change,
                 number(trial.current_ms),
                 number(trial.step_ms),
                 predicted_text(trial),
                 number(trial.noise_ms),
                 word(trial.end),
                 trial.why.empty() ? "" : ": " + trial.why);
  }
  return page;
}

base::Json to_json(const TuneReport& report) {
  base::Json trials = base::Json::array();
  for (const Trial& trial : report.tuning.trials) trials.push_back(trial_json(trial));
  return {{"first_ms", report.tuning.first_ms},
          {"best_ms", report.tuning.best_ms},
          {"gain", report.tuning.gain},
          {"start_ms", report.tuning.best_ms * report.tuning.gain},
          {"trials", std::move(trials)},
          {"recipe", report.recipe.string()},
          {"interrupted", report.tuning.is_interrupted()},
          {"end", word(report.tuning.end)},
          {"untried", report.tuning.untried},
          {"machine", to_json(this_machine())}};
}

}  // namespace weft::cli
