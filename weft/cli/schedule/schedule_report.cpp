#include "weft/cli/schedule/schedule_report.h"

#include <algorithm>
#include <cmath>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/cli/plan/layout_text.h"
#include "weft/cli/terminal/timeline_grid.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/exec/sim/timelines.h"
#include "weft/schedule/text/summary.h"
#include "weft/trace/svg.h"

namespace weft::cli {
namespace {

constexpr int kColumns = 100;
constexpr std::size_t kLongestTurns = 160;
// Limit of nodes in a picture: about 4 MB, which a browser still opens.
constexpr std::ptrdiff_t kMostDrawn = 20'000;

double step_ms(const SimulatedStep& simulated) { return simulated.result.step_seconds() * 1e3; }

exec::sim::Window window_ns(const PictureWindow& window) {
  return {.from_ns = std::llround(window.from_ms * 1e6), .to_ns = std::llround(window.to_ms * 1e6)};
}

// Description of the requested order and its source.
std::string order_of(const ScheduleReport& report) {
  const std::string given =
      report.source.empty() ? order_text(report.config) : base::text("read from {}", report.source);
  const bool is_found = report.improvement && report.improvement->is_better();
  return is_found ? base::text("found by --improve, beginning with: {}", given) : given;
}

std::string heading(const ScheduleReport& report) {
  return base::text(
      "{} ({}), {}, {}\norder: {}\n",
      base::counted(report.grid.world(), "rank"),
      layout_text(report.config.model),
      base::counted(report.config.model.num_layers, "layer"),
      base::counted(derive::micro_batches(report.config.train, report.grid.dp()), "micro-batch"),
      order_of(report));
}

// Shortens in the middle: the ends of a step are the interesting parts.
std::string shortened(const std::string& turns) {
  if (turns.size() <= kLongestTurns) return turns;
  const std::size_t half = (kLongestTurns - 5) / 2;
  const std::size_t first = turns.rfind(' ', half);
  const std::size_t second = turns.find(' ', turns.size() - half);
  if (first == std::string::npos || second == std::string::npos) return turns;
  return turns.substr(0, first) + " ..." + turns.substr(second);
}

std::string turns_text(const ScheduleReport& report) {
  std::string text =
      "\nturns (F forward, B backward, or D and later W: its input and its weight gradients; "
      "micro-batch.chunk; [side|by side])\n";
  for (const schedule::RankPlan& plan : report.plans) {
    text += base::text("rank {:<3} {}\n",
                       plan.anatomy.pp_rank,
                       shortened(schedule::summary(plan.training, plan.anatomy)));
  }
  return text;
}

std::string verdict_text(const ScheduleReport& report) {
  std::string text = base::text("\nverified: {}; {} in {}\n",
                                report.valid() ? "yes" : "no",
                                base::counted(static_cast<std::int64_t>(nodes_of(report)), "node"),
                                base::counted(std::ssize(report.plans), "graph"));
  for (const std::string& complaint : report.complaints) {
    for (const std::string& line : base::split(complaint, '\n')) text += "  " + line + '\n';
  }
  return text;
}

std::string ranks_text(const ScheduleReport& report) {
  std::string text = base::text("  {:<6} {:>8} {:>16}\n", "rank", "nodes", "kept activations");
  for (std::size_t i = 0; i < report.plans.size(); ++i) {
    text += base::text("  {:<6} {:>8} {:>16}\n",
                       report.plans[i].anatomy.pp_rank,
                       report.plans[i].training.entries.size(),
                       base::human_bytes(static_cast<double>(report.activation_bytes[i])));
  }
  return text;
}

std::string time_text(const SimulatedStep& simulated) {
  std::string text =
      base::text("step: {:.4g} ms simulated, costs {}\n", step_ms(simulated), simulated.costs);
  if (!simulated.exposure) return text + "exposure: not looked at, the step has too many nodes\n";
  const trace::CommunicationTime& total = simulated.exposure->total;
  return text +
         base::text(
             "communication: {:.4g} ms a rank, hidden_any {:.1f} %, hidden_gemm {:.1f} %, "
             "exposed {:.4g} ms (no partner {:.4g}, short cover {:.4g}, peer {:.4g}, host "
             "{:.4g})\n",
             total.communication_ms,
             total.hidden_any * 100,
             total.hidden_gemm * 100,
             total.exposed_ms,
             total.reasons.no_partner_ms,
             total.reasons.short_cover_ms,
             total.reasons.peer_ms,
             total.reasons.host_ms) +
         trace::legend("  ");
}

base::Json rank_json(const ScheduleReport& report, std::size_t i) {
  const schedule::RankPlan& plan = report.plans[i];
  base::Json json{{"pp_rank", plan.anatomy.pp_rank}, {"nodes", plan.training.entries.size()}};
  if (!report.valid()) return json;
  json["turns"] = schedule::summary(plan.training, plan.anatomy);
  json["peak_activation_bytes"] = report.activation_bytes[i];
  return json;
}

// Comparison of pipeline orders; '>' marks the requested one.
std::string orders_text(const ScheduleReport& report) {
  if (report.orders.empty()) {
    const bool has_orders = report.valid() && report.grid.pp() > 1;
    return has_orders ? "\norders of the pipeline: not compared, the step has too many nodes\n"
                      : "";
  }
  std::string text = base::text(
      "\norders of the pipeline (runtime.pipeline_schedule)\n"
      "  {:<12} {:>6} {:>10} {:>14} {:>22}\n",
      "schedule",
      "chunks",
      "step",
      "compute idle",
      "kept activations, most");
  for (const plan::PipelineOrder& order : report.orders) {
    text += base::text("{} {:<12} {:>6} ",
                       order.is_asked_for ? '>' : ' ',
                       config::word(order.schedule),
                       order.chunks);
    text += order.refusal.empty()
                ? base::text("{:>7.4g} ms {:>12.1f} % {:>22}\n",
                             order.step_seconds * 1e3,
                             order.idle * 100,
                             base::human_bytes(static_cast<double>(order.activation_bytes)))
                : base::text("  none: {}\n", order.refusal);
  }
  return text;
}

std::string improvement_text(const ScheduleReport& report) {
  if (!report.improvement) return "";
  const plan::Improvement& found = *report.improvement;
  const auto bytes = [](std::int64_t count) { return base::human_bytes(double(count)); };
  std::string text = base::text("improved: {} tried, no order takes less than {:.4g} ms\n",
                                base::counted(found.tried, "order"),
                                found.bound_seconds * 1e3);
  if (found.is_better()) {
    text += base::text(
        "  {:.4g} ms instead of {:.4g} ms: {:.0f} % of what was above the bound is gone; keeps {} "
        "instead of {} (limit {})\n",
        found.found_seconds * 1e3,
        found.given_seconds * 1e3,
        found.share_gone() * 100,
        bytes(found.found_bytes),
        bytes(found.given_bytes),
        bytes(found.limit_bytes));
  } else {
    text +=
        base::text("  none is shorter than the given one, {:.4g} ms\n", found.given_seconds * 1e3);
  }
  if (found.over_limit > 0) {
    text += base::text("  {} would have been shorter but would keep more than {}: --memory-limit\n",
                       base::counted(found.over_limit, "order"),
                       bytes(found.limit_bytes));
  }
  return text;
}

base::Json improvement_json(const plan::Improvement& found) {
  return {{"tried", found.tried},
          {"given_ms", found.given_seconds * 1e3},
          {"found_ms", found.found_seconds * 1e3},
          {"bound_ms", found.bound_seconds * 1e3},
          {"share_gone", found.share_gone()},
          {"given_activation_bytes", found.given_bytes},
          {"found_activation_bytes", found.found_bytes},
          {"limit_activation_bytes", found.limit_bytes},
          {"over_limit", found.over_limit}};
}

base::Json order_json(const plan::PipelineOrder& order) {
  base::Json json{{"schedule", config::word(order.schedule)},
                  {"chunks", order.chunks},
                  {"asked_for", order.is_asked_for},
                  {"refusal", nullptr}};
  if (!order.refusal.empty()) {
    json["refusal"] = order.refusal;
    return json;
  }
  json["step_ms"] = order.step_seconds * 1e3;
  json["idle"] = order.idle;
  json["peak_activation_bytes"] = order.activation_bytes;
  return json;
}

}  // namespace

std::size_t nodes_of(const ScheduleReport& report) {
  std::size_t nodes = 0;
  for (const schedule::RankPlan& plan : report.plans) nodes += plan.training.entries.size();
  return nodes;
}

base::Json to_json(const ScheduleReport& report) {
  base::Json ranks = base::Json::array();
  for (std::size_t i = 0; i < report.plans.size(); ++i) ranks.push_back(rank_json(report, i));
  base::Json json{{"valid", report.valid()},
                  {"nodes", nodes_of(report)},
                  {"step_ms", nullptr},
                  {"peak_activation_bytes", nullptr},
                  {"world", report.grid.world()},
                  {"micro_batches", report.plans.front().shape.micro_batches},
                  {"complaints", report.complaints},
                  {"ranks", std::move(ranks)}};
  if (!report.simulated) return json;
  json["step_ms"] = step_ms(*report.simulated);
  json["peak_activation_bytes"] = std::ranges::max(report.activation_bytes);
  json["costs"] = report.simulated->costs;
  if (report.improvement) json["improvement"] = improvement_json(*report.improvement);
  json["pipeline_orders"] = base::Json::array();
  for (const plan::PipelineOrder& order : report.orders) {
    json["pipeline_orders"].push_back(order_json(order));
  }
  if (report.simulated->exposure) {
    json["exposure"] = trace::to_json(report.simulated->exposure->total);
  }
  return json;
}

std::string to_text(const ScheduleReport& report) {
  std::string text = heading(report);
  // Turns and times require valid graphs.
  if (!report.simulated) return text + verdict_text(report);
  const SimulatedStep& simulated = *report.simulated;
  text += turns_text(report);
  text +=
      "\nsimulated step (F forward, R recomputation, B input gradient, W weight gradient, o other; "
      "f b on the wire,\ns sums over ranks, O I copies to the host and back; compute and the wire "
      "stand in one column only where "
      "they "
      "ran at the same time)\n";
  text += timeline_grid(simulated.step, simulated.result, kColumns);
  return text + verdict_text(report) + ranks_text(report) + time_text(simulated) +
         improvement_text(report) + orders_text(report);
}

PictureWindow picture_window(const SimulatedStep& simulated,
                             const std::optional<PictureWindow>& asked) {
  PictureWindow window{.from_ms = 0, .to_ms = step_ms(simulated)};
  if (asked) window = {.from_ms = asked->from_ms, .to_ms = std::min(asked->to_ms, window.to_ms)};
  const exec::sim::Window wanted = window_ns(window);
  std::vector<std::int64_t> begins;  // begins of the nodes to draw
  for (const auto& rank : simulated.result.entries) {
    for (const exec::sim::Interval& interval : rank) {
      if (wanted.overlaps(interval)) begins.push_back(interval.begin_ns);
    }
  }
  if (std::ssize(begins) <= kMostDrawn) return window;
  std::ranges::nth_element(begins, begins.begin() + kMostDrawn);
  window.to_ms =
      std::max(static_cast<double>(begins[static_cast<std::size_t>(kMostDrawn)] - 1) / 1e6,
               window.from_ms);
  window.is_cut = true;
  return window;
}

std::string to_svg(const ScheduleReport& report, const PictureWindow& window) {
  CHECK(report.simulated.has_value(), "a picture of nothing");
  const SimulatedStep& simulated = *report.simulated;
  const std::string title = base::text("weft schedule: {} ({}), {}",
                                       base::counted(report.grid.world(), "rank"),
                                       layout_text(report.config.model),
                                       order_of(report));
  trace::Picture picture{
      .title = title,
      .rows = {{.caption = base::text("simulated, costs {}", simulated.costs),
                .timelines =
                    exec::sim::timelines_of(simulated.step, simulated.result, window_ns(window)),
                .step = trace::Picture::Row::Extent{.begin_ns = 0,
                                                    .end_ns = simulated.result.step_ns}}}};
  return trace::to_svg(picture, {.from_ms = window.from_ms, .to_ms = window.to_ms});
}

}  // namespace weft::cli
