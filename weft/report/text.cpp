#include "weft/base/text.h"

#include <algorithm>
#include <array>

#include "weft/base/casts.h"
#include "weft/plan/cost/time_text.h"
#include "weft/report/render.h"
#include "weft/tensor/pool.h"

namespace weft::report {
namespace {

using base::text;

// Share of the step below which pieces are summed up.
constexpr double kSmallShare = 0.01;
constexpr std::size_t kMostLayerRows = 64;

std::string human(std::size_t bytes) { return base::human_bytes(static_cast<double>(bytes)); }

std::string heading(const Report& report) {
  std::string all = text("{} {}", report.kind, base::shown(report.name));
  for (const Fact& fact : report.about) all += text("\n  {:<10}{}", fact.name, fact.words);
  if (report.learning) all += text("\n  {:<10}{}", "learned", learning_text(*report.learning));
  if (!report.crowded.empty()) all += text("\n  {:<10}{}", "crowded", report.crowded);
  if (report.steps) {
    all += text("\n{}: median {:.4g} ms, {:.0f} tokens/s, {:.3g} TFLOP/s a rank",
                base::counted(report.steps->steps, "step"),
                report.steps->median_ms,
                report.steps->tokens_per_second,
                report.steps->tflops_per_rank);
  }
  if (report.traced_steps > 0) {
    all += text("\ntraced: {} of {}, {} a step",
                base::counted(report.traced_steps, "step"),
                base::counted(std::ssize(report.ranks), "rank"),
                plan::time_text(report.walls.step));
  }
  if (report.shortened.is_short()) {
    all += text("\nthe timeline shows {} of {} micro-batches; times are of all of them",
                report.shortened.shown,
                report.shortened.micro_batches);
  }
  return all + '\n';
}

std::string walls_text(const Report& report) {
  if (report.traced_steps == 0) return "";
  const trace::Walls& walls = report.walls;
  struct WallLine {
    const char* name;
    double ms;
    const char* meaning;
  };
  // A node of a simulated step counts as one kind, though some of its kernels belong to another.
  const double products = report.longest ? 0 : walls.gemm;
  const std::array<WallLine, 9> lines{
      {{"compute", walls.compute, "an operation of the compute lane ran"},
       {"  products", products, "of it matrix products and attention"},
       {"slowed", walls.slowed, "transfers took of the compute beside them"},
       {"communication", walls.communication, "only messages moved"},
       {"late ranks", walls.late, "waiting for ranks that had not begun an operation"},
       {"bubble", walls.bubble, "waiting for another stage of the pipeline"},
       {"host", walls.host, "compute was ready and had not been issued"},
       {"copies", walls.copy, "only copies to or from the host ran"},
       {"idle", walls.idle, "nothing ran, and nothing was ready"}}};
  std::string all = "\ntime by wall, a step of a rank in the mean\n";
  if (report.longest) {
    all = text("\ntime by wall, a step of the rank that works longest: {}\n", *report.longest);
  }
  for (const WallLine& line : lines) {
    if (line.ms <= 0) continue;
    all += text("  {:<14} {:>10.3f} ms {:>6.1f} %   {}\n",
                line.name,
                line.ms,
                walls.step > 0 ? 100 * line.ms / walls.step : 0.0,
                line.meaning);
  }
  return all;
}

std::string exposure_text(const Report& report) {
  if (report.exposure.kinds.empty()) return "";
  return "\ncommunication by kind and reason\n" + trace::to_table(report.exposure);
}

std::string memory_text(const Report& report) {
  if (!report.memory) return "";
  const measure::MemoryForecast& forecast = report.memory->forecast;
  std::string all = "\nmemory, predicted; at the peak of each pipeline rank\n";
  for (std::size_t stage = 0; stage < forecast.stages.size(); ++stage) {
    const train::PredictedMemory& memory = forecast.stages[stage];
    std::vector<std::string> tags;
    for (int tag = 0; tag < tensor::kTags; ++tag) {
      const std::size_t bytes = memory.at_peak.bytes[base::at(tag)];
      if (bytes == 0) continue;
      tags.push_back(text("{} {}", tensor::name_of(static_cast<tensor::Tag>(tag)), human(bytes)));
    }
    all += text("  pp rank {}: {} at {}: {}\n",
                stage,
                human(memory.peak_total_bytes),
                memory.at_peak.node.empty() ? "the start" : memory.at_peak.node,
                fmt::join(tags, ", "));
  }
  if (report.memory->room_bytes == 0) return all;
  return all + text("  {:.1f} % of {} of {}\n",
                    100 * report.memory->share(),
                    human(report.memory->room_bytes),
                    report.memory->gpu);
}

std::string loads_text(const Report& report) {
  if (report.loads.empty()) return "";
  std::string all =
      text("\nexpert loads over their mean, 1 is even\n  {:<6} {:>7} {:>7} {:>7} {:>9}\n",
           "layer",
           "max",
           "p95",
           "p50",
           "dropped");
  const std::size_t shown = std::min(report.loads.size(), kMostLayerRows);
  for (std::size_t i = 0; i < shown; ++i) {
    const LayerLoad& load = report.loads[i];
    all += text("  {:<6} {:>7.2f} {:>7.2f} {:>7.2f} {:>9}\n",
                load.layer,
                load.max,
                load.p95,
                load.p50,
                load.dropped);
  }
  if (shown < report.loads.size()) {
    all += text("  and {} more\n",
                base::counted(static_cast<std::int64_t>(report.loads.size() - shown), "layer"));
  }
  return all;
}

std::string row_text(const Comparison::Row& row) {
  return text("  {:<22} {:>10.3f} {:>10.3f} {:>8.1f} %\n",
              row.name,
              row.measured_ms,
              row.predicted_ms,
              100 * row.error());
}

std::string comparison_text(const Report& report) {
  if (!report.comparison) return "";
  const Comparison& comparison = *report.comparison;
  std::string all =
      text("\npredicted beside measured, ms a step; costs {}\n  {:<22} {:>10} {:>10} {:>10}\n",
           comparison.costs,
           "",
           "measured",
           "predicted",
           "error");
  all += row_text(comparison.step);
  if (comparison.replayed.predicted_ms > 0) all += row_text(comparison.replayed);
  Comparison::Row rest;
  std::int64_t left = 0;
  for (const Comparison::Row& row : comparison.pieces) {
    if (row.measured_ms >= kSmallShare * comparison.step.measured_ms) {
      all += row_text(row);
      continue;
    }
    rest.measured_ms += row.measured_ms;
    rest.predicted_ms += row.predicted_ms;
    ++left;
  }
  rest.name = base::counted(left, "smaller piece");
  if (left > 0) all += row_text(rest);
  all += "  (replayed: the step from the measured nodes alone, with no time between them)\n";
  return comparison.reason.empty() ? all : all + text("  why: {}\n", comparison.reason);
}

std::string gain_text(const Suggestion& suggestion, double step_ms) {
  if (!suggestion.gain_ms) return "what it gains is not known";
  const double ms = *suggestion.gain_ms, share = step_ms > 0 ? 100 * ms / step_ms : 0;
  if (suggestion.freed_bytes > 0) {
    return text("frees {} for {:.3g} ms a step, nominal",
                human(static_cast<std::size_t>(suggestion.freed_bytes)),
                std::max(0.0, -ms));
  }
  return text("{} {:.4g} ms, {:.1f} % of the step",
              suggestion.basis == Suggestion::Basis::Simulated ? "simulated gain" : "gains at most",
              ms,
              share);
}

std::string next_text(const Report& report) {
  std::string all = text("\ndominant wall: {}{}\n",
                         report.wall.empty() ? "not known" : report.wall,
                         report.wall == "cores" ? ", which ranks share" : "");
  if (report.next.empty()) {
    return all + "next: nothing that this report knows gains more than a hundredth of the step\n";
  }
  all += "next, one at a time, in the order fit, scale, profile, retune\n";
  int number = 0;
  for (const Suggestion& one : report.next) {
    all += text("  {}. {}: {}\n     {}\n     because {}\n     rule: {}\n",
                ++number,
                word(one.phase),
                one.change,
                gain_text(one, report.step_ms()),
                one.because,
                one.rule);
  }
  return all;
}

}  // namespace

std::string to_text(const Report& report) {
  std::string all = heading(report) + walls_text(report) + exposure_text(report) +
                    memory_text(report) + loads_text(report) + comparison_text(report) +
                    next_text(report);
  for (const std::string& note : report.notes) all += text("note: {}\n", note);
  // Lanes and files carry foreign names.
  return base::without_controls(all);
}

}  // namespace weft::report
