#include "weft/cli/perf/tune_report.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/cli/run/machine.h"
#include "weft/plan/hardware/hardware.h"

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
  json["step_ms"] = trial.times.after_ms;
  json["current_ms"] = trial.times.before_ms;
  json["noise_ms"] = trial.times.noise_ms;
  json["too_noisy"] = trial.times.is_too_noisy();
  return json;
}

base::Json whole_json(const std::optional<measure::Beside>& whole) {
  if (!whole) return nullptr;
  return {{"start_ms", whole->before_ms},
          {"best_ms", whole->after_ms},
          {"noise_ms", whole->noise_ms},
          {"gain", whole->gain()},
          {"too_noisy", whole->is_too_noisy()}};
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

// Reason for an early end; empty: no change pays.
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

std::string noise_text(const measure::Beside& times) {
  return text("too noisy: three standard errors are {:.2f} ms, {:.0f} % of the step",
              times.noise_ms,
              times.noise_ms / times.before_ms * 100);
}

// "1.20 times as fast: 12.00 -> 10.00 ms (noise 0.30)"
std::string factor_text(const measure::Beside& times) {
  std::string all = text("{:.2f} times as fast: {:.2f} -> {:.2f} ms (noise {:.2f})",
                         times.gain(),
                         times.before_ms,
                         times.after_ms,
                         times.noise_ms);
  return times.is_too_noisy() ? text("{}; {}", all, noise_text(times)) : all;
}

// Factor with its two medians. If no run compared the first setting with the last: the factor of
// each kept change.
std::string kept_text(const measure::Tuning& tuning) {
  std::string lines;
  for (const Trial& trial : tuning.trials) {
    if (trial.end != TrialEnd::Kept) continue;
    lines += text("  {}\n", trial.change);
    if (!tuning.whole) lines += text("    {}\n", factor_text(trial.times));
  }
  if (lines.empty()) return "";
  if (tuning.whole)
    return text("{}, measured in turn, with\n{}", factor_text(*tuning.whole), lines);
  return "kept, each measured beside the setting before it, not yet all beside the first:\n" +
         lines;
}

// Warning if every measured trial was too noisy for a gain of a few percent: "no change pays" would
// be wrong.
std::string noise_warning(const measure::Tuning& tuning) {
  const auto is_lost = [](const Trial& trial) {
    return trial.end == TrialEnd::Reverted && trial.times.is_too_noisy();
  };
  const auto lost = std::ranges::count_if(tuning.trials, is_lost);
  if (lost == 0) return "";
  return text(
      "{} of {} too noisy to tell: three standard errors exceed a tenth of the step. Tune on a "
      "quiet machine, or with more --steps and --repeats\n",
      lost,
      base::counted(std::ranges::count_if(tuning.trials, is_measured), "trial") +
          (lost == 1 ? " was" : " were"));
}

std::string gains_text(const TuneReport& report) {
  const measure::Tuning& tuning = report.tuning;
  if (std::string kept = kept_text(tuning); !kept.empty()) return kept;
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

std::string summary(const TuneReport& report) {
  return gains_text(report) + noise_warning(report.tuning) + end_text(report);
}

constexpr std::string_view kProgramLine = "measured as Weft runs it, on this machine\n";

std::string contract(const TuneReport& report) {
  const measure::TuneRequest& request = report.request;
  return text(
      "Model, data, global batch, numerics and layout stay. A trial is {} of each of two settings, "
      "in turn, {} steps each; {} are timed. A change is kept where it is faster by more than "
      "three "
      "standard errors. How many times as fast is said of two settings that ran in turn: after "
      "several kept changes the first and the last are measured again.",
      base::counted(request.repeats, "run"),
      request.steps,
      measure::describe(request.window));
}

}  // namespace

std::string to_line(const Trial& trial) {
  if (!is_measured(trial)) {
    return text("{:<9} {}: {}", word(trial.end), trial.change, trial.why);
  }
  const bool is_lost = trial.end == TrialEnd::Reverted && trial.times.is_too_noisy();
  return text("{:<9} {:.2f} -> {:.2f} ms (noise {:.2f}, predicted {}{})  {}",
              word(trial.end),
              trial.times.before_ms,
              trial.times.after_ms,
              trial.times.noise_ms,
              predicted_text(trial),
              is_lost ? "; too noisy to tell" : "",
              trial.change);
}

std::string to_text(const TuneReport& report) {
  std::string all = std::string(kProgramLine) + summary(report);
  all += text("recipe    {}\n", report.recipe.string());
  all += text("trials    {}\n", (report.recipe.parent_path() / "result.md").string());
  return all;
}

std::string to_markdown(const TuneReport& report) {
  std::string page = text("# weft tune {}\n\n{}{}\n{}\n\n{}\n",
                          report.name,
                          kProgramLine,
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
                 number(trial.times.before_ms),
                 number(trial.times.after_ms),
                 predicted_text(trial),
                 number(trial.times.noise_ms),
                 word(trial.end),
                 trial.why.empty() ? "" : ": " + trial.why);
  }
  return page;
}

base::Json to_json(const TuneReport& report) {
  base::Json trials = base::Json::array();
  for (const Trial& trial : report.tuning.trials) trials.push_back(trial_json(trial));
  return {{"program", plan::word(plan::Program::Weft)},
          {"first_ms", report.tuning.first_ms},
          {"best_ms", report.tuning.best_ms},
          {"whole", whole_json(report.tuning.whole)},
          {"trials", std::move(trials)},
          {"recipe", report.recipe.string()},
          {"interrupted", report.tuning.is_interrupted()},
          {"end", word(report.tuning.end)},
          {"untried", report.tuning.untried},
          {"machine", to_json(this_machine())}};
}

}  // namespace weft::cli
