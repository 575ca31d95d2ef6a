#include "weft/cli/perf/perf_text.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/cli/plan/layout_text.h"
#include "weft/config/dump.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"

namespace weft::cli {
namespace {

using base::text;
using TextRow = std::vector<std::string>;

constexpr const char* kSeveralKnobs =
    "Several knobs vary: a winner among the combinations is not to be credited to one of them.";

constexpr const char* kColumnLegend =
    "spread: standard deviation of the timed steps; speed-up: over the first row; exposed: "
    "communication while no\ncompute ran; hidden: the share of communication during which some "
    "compute ran; peak memory: of rank 0.";

TextRow heading() {
  return {"value",
          "step ms",
          "spread ms",
          "speed-up",
          "tokens/s",
          "TFLOP/s",
          "exposed ms",
          "hidden",
          "peak memory",
          "loss"};
}

TextRow row_of(const PerfReport& report, std::size_t index) {
  const measure::PerfRun& run = report.runs[index];
  // Marks the times of a twin, which are not the model's.
  const std::string& value = report.plan.candidates[index].value;
  TextRow row{report.plan.is_twin() ? "twin, " + value : value};
  if (run.steady_ms) {
    row.push_back(text("{:.2f}", run.steady_ms->mean));
    row.push_back(text("{:.2f}", run.steady_ms->deviation));
    row.push_back(text("{:.3f}", speedup(report, index)));
    row.push_back(text("{:.0f}", run.tokens_per_second));
    row.push_back(text("{:.4f}", run.flops_per_second / 1e12));
  } else {
    row.insert(row.end(), 5, "-");
  }
  const bool communicates = run.exposure && run.exposure->total.communication_ms > 0;
  row.push_back(run.exposure ? text("{:.2f}", run.exposure->total.exposed_ms) : "-");
  row.push_back(communicates ? text("{:.0f} %", run.exposure->total.hidden_any * 100) : "-");
  row.push_back(base::human_bytes(static_cast<double>(run.total_peak_bytes())));
  row.push_back(run.losses.empty() ? "-" : text("{:.4f}", run.losses.back()));
  return row;
}

std::vector<TextRow> table_of(const PerfReport& report) {
  std::vector<TextRow> rows{heading()};
  for (std::size_t i = 0; i < report.runs.size(); ++i) rows.push_back(row_of(report, i));
  return rows;
}

std::string aligned(const std::vector<TextRow>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const TextRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string all;
  for (const TextRow& row : rows) {
    all += text("{:<{}}", row.front(), widths.front());
    for (std::size_t i = 1; i < row.size(); ++i) all += text("  {:>{}}", row[i], widths[i]);
    all += '\n';
  }
  return all;
}

std::string markdown_table(const std::vector<TextRow>& rows) {
  std::string all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    all += text("| {} |\n", fmt::join(rows[i], " | "));
    if (i == 0) all += text("|---|{}|\n", fmt::join(TextRow(rows[i].size() - 1, "---:"), "|"));
  }
  return all;
}

std::string window_text(const PerfReport& report) {
  const auto timed = std::ranges::find_if(report.runs, [](const measure::PerfRun& run) {
    return run.window.has_value();
  });
  if (timed == report.runs.end()) return "no step was timed";
  return text("steps {} to {} of {}, counted from 0 ({}); then {} traced steps for the exposure",
              timed->window->first,
              timed->window->end - 1,
              report.plan.steps,
              measure::describe(report.window),
              measure::kTracedSteps);
}

// Significance of the differences, and a caveat for twins.
std::string run_verdicts(const PerfReport& report) {
  std::string all;
  for (std::size_t i = 1; i < report.runs.size(); ++i) {
    const std::optional<RunDifference> difference = beside_first(report, i);
    if (!difference) continue;
    all += text("verdict   {} beside {} is {}\n",
                report.plan.candidates[i].value,
                report.plan.candidates.front().value,
                to_text(*difference));
  }
  if (const std::string command = price_command(report); !command.empty()) {
    all += text("price     a twin's times are not the model's; of the run that was asked for: {}\n",
                command);
  }
  return all;
}

std::string label_text(const PerfPlan& plan) {
  const std::vector<std::string> reasons = benchmark_reasons(plan);
  return reasons.empty() ? label_of(plan)
                         : text("{} ({})", label_of(plan), fmt::join(reasons, "; "));
}

std::string health_text(const PerfReport& report) {
  std::string all;
  if (const std::string crowd = crowding(report.plan, report.machine); !crowd.empty()) {
    all += text("crowded   {}\n", crowd);
  }
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    if (report.runs[i].not_finite == 0) continue;
    all += text("{}: {} not finite and changed nothing\n",
                report.plan.candidates[i].value,
                base::counted(report.runs[i].not_finite, "step") +
                    (report.runs[i].not_finite == 1 ? " was" : " were"));
  }
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    if (report.runs[i].repeated == 0) continue;
    all += text("{}: {} exceeded model.moe_expert_rank_capacity_factor and ran twice\n",
                report.plan.candidates[i].value,
                base::counted(report.runs[i].repeated, "step"));
  }
  return all;
}

std::string state_text(const PerfReport& report) {
  switch (report.state) {
    case PerfState::Complete:
      return "";
    case PerfState::Running:
    case PerfState::Interrupted:
      return text("INTERRUPTED: {} of {} here, the last perhaps in part\n",
                  report.runs.size(),
                  base::counted(std::ssize(report.plan.candidates), "run"));
    case PerfState::Failed:
      return text("FAILED after {} of {}: {}\n",
                  report.runs.size(),
                  base::counted(std::ssize(report.plan.candidates), "run"),
                  report.failure);
  }
  return "";
}

// Keys in which a run differs from the first.
std::string differences(const PerfPlan& plan, const Candidate& candidate) {
  std::string all;
  for (const config::Field& field : config::fields()) {
    const config::Config& first = plan.candidates.front().config;
    if (field.get(first) == field.get(candidate.config)) continue;
    all += text("{}={}\n", field.key, config::value_text(field, candidate.config));
  }
  return all;
}

std::string configs_markdown(const PerfPlan& plan) {
  std::string all = text("\n## Config of `{}`\n\n```yaml\n{}```\n",
                         plan.candidates.front().value,
                         config::to_yaml(plan.candidates.front().config));
  for (std::size_t i = 1; i < plan.candidates.size(); ++i) {
    all += text("\n## Config of `{}`\n\nThe first, but\n\n```\n{}```\n",
                plan.candidates[i].value,
                differences(plan, plan.candidates[i]));
  }
  return all;
}

std::string changes_markdown(const PerfPlan& plan) {
  std::string all = "\n## From what was asked for to what ran\n\n";
  for (const Candidate& candidate : plan.candidates) {
    all += text("`{}`:\n\n", candidate.value);
    for (const plan::Change& change : candidate.changes) {
      all += text("- {}\n", change_line(change));
    }
    all += '\n';
  }
  return all;
}

}  // namespace

std::string change_line(const plan::Change& change) {
  return text("{}: {} -> {} ({})", change.key, change.from.dump(), change.to.dump(), change.why);
}

std::string to_text(const PerfReport& report) {
  std::string all;
  if (!report.plan.varied.empty()) all += text("{}\n", fmt::join(report.plan.varied, ", "));
  all += aligned(table_of(report));
  all += text("{}\n", kColumnLegend);
  if (report.plan.varied.size() > 1) all += text("{}\n", kSeveralKnobs);
  all += run_verdicts(report);
  all += text("window    {}\n", window_text(report));
  all += text("frozen    {}\n", frozen_text(report.plan));
  all += text("label     {}\n", label_text(report.plan));
  return all + health_text(report) + state_text(report);
}

std::string to_markdown(const PerfReport& report) {
  const PerfPlan& plan = report.plan;
  std::string all = text("# weft perf: {}\n\n", report.name);
  all += state_text(report);
  if (!plan.varied.empty()) all += text("Varies: `{}`\n\n", fmt::join(plan.varied, "`, `"));
  all += markdown_table(table_of(report));
  all += text("\n{}\n", kColumnLegend);
  if (plan.varied.size() > 1) all += text("\n{}\n", kSeveralKnobs);
  if (const std::string verdicts = run_verdicts(report); !verdicts.empty()) {
    all += text("\n```\n{}```\n", verdicts);
  }
  all += text("\n- window: {}\n- frozen: {}\n- label: {}\n- machine: {}\n",
              window_text(report),
              frozen_text(plan),
              label_text(plan),
              to_text(report.machine));
  if (plan.is_twin()) all += text("- twin: {}\n", plan.twin_reason);
  all += health_text(report);
  return all + changes_markdown(plan) + configs_markdown(plan);
}

std::string dry_run_text(const PerfPlan& plan) {
  std::string all;
  for (const Candidate& candidate : plan.candidates) {
    all += text("# would run {}: {} and {} traced, {}, {}{}\n",
                candidate.value,
                base::counted(plan.steps, "step"),
                measure::kTracedSteps,
                base::counted(derive::layout_of(candidate.config).world, "rank"),
                layout_text(candidate.config->model),
                plan.is_twin() ? ", on a twin (" + plan.twin_reason + ")" : "");
    for (const plan::Change& change : candidate.changes) {
      all += text("#   {}\n", change_line(change));
    }
  }
  return all + runs_text(plan);
}

std::string runs_text(const PerfPlan& plan) {
  std::string all = config::to_yaml(plan.candidates.front().config);
  for (std::size_t i = 1; i < plan.candidates.size(); ++i) {
    all += text("# run {} ({}) is this, but\n", i + 1, plan.candidates[i].value);
    for (const std::string& line : base::split(differences(plan, plan.candidates[i]), '\n')) {
      if (!line.empty()) all += text("#   {}\n", line);
    }
  }
  return all;
}

}  // namespace weft::cli
