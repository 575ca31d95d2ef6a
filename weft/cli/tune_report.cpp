#include "weft/cli/tune_report.h"

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/cli/machine.h"

namespace weft::cli {
namespace {

using base::text;
using measure::Trial;
using measure::TrialEnd;

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

std::string summary(const TuneReport& report) {
  const measure::Tuning& tuning = report.tuning;
  std::string changes;
  for (const Trial& trial : tuning.trials) {
    if (trial.end == TrialEnd::Kept) changes += text("  {}\n", trial.change);
  }
  if (changes.empty()) return text("no change pays: {:.2f} ms a step\n", tuning.best_ms);
  return text("{:.2f} ms a step instead of {:.2f} ms ({:.2f} times as fast), with\n{}",
              tuning.best_ms,
              tuning.first_ms,
              tuning.first_ms / tuning.best_ms,
              changes);
}

std::string contract(const TuneReport& report) {
  const measure::TuneRequest& request = report.request;
  return text(
      "Model, data, global batch and layout stay. A trial is {} of each of two settings, in turn, "
      "{} steps each; {} are timed. A change is kept where it is faster by more than three "
      "standard "
      "errors.",
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
          {"trials", std::move(trials)},
          {"recipe", report.recipe.string()},
          {"interrupted", report.tuning.interrupted},
          {"machine", to_json(this_machine())}};
}

}  // namespace weft::cli
