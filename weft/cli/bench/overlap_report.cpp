#include "weft/cli/bench/overlap_report.h"

#include <cmath>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/exec/sim/measure.h"
#include "weft/measure/runs/steady_part.h"
#include "weft/plan/price/overlap_prediction.h"
#include "weft/trace/step_parts.h"
#include "weft/trace/svg.h"

namespace weft::cli {
namespace {

// Share of the plain step in a picture: a whole step has too many nodes.
constexpr double kPictured = 0.2;

// A measured step may be shorter than the longer of the two, and than the ideal. Each of these is
// another measurement or a simulation, with its own waits for late ranks.
constexpr const char* kComputeLegend =
    "\n"
    "  compute alone: the plain order on free links; communication alone: the plain order "
    "simulated, with the measured\n"
    "  costs of its communication and no time for compute.\n";
constexpr const char* kOneRankLegend =
    "\n"
    "  One rank of a pretended world runs; its peers are taken to do what it does. Free links: "
    "communication is a copy\n"
    "  inside the device. compute alone: the plain order on free links, less these copies; "
    "communication alone: the\n"
    "  plain order simulated, with the measured costs of its communication and no time for "
    "compute.\n"
    "  layers: without embedding, head and optimizer, and what is reduced and gathered for it; "
    "ratio: communication\n"
    "  alone over compute alone, of the layers. with a partner: of the layers' communication that "
    "compute "
    "may run beside, by the\n  order.\n"
    "  On all links the prediction takes what compute costs from the plain order on free ones, "
    "where the device is "
    "as busy\n"
    "  as in an overlapped order: a GPU that waits for its links is clocked higher meanwhile. "
    "Beside "
    "communication compute\n"
    "  is slowed down as far as that copies in the device's memory; how much such copies slow it "
    "is "
    "measured beforehand.\n";
constexpr const char* kLegend =
    "  ideal: the simulated step where only compute and the wire take time, of the last order that "
    "is "
    "predicted. None of\n"
    "  the three is a bound: ranks also wait for each other, which overlap evens out.\n"
    "  predicted: the step time simulated beforehand, from node costs measured in the plain "
    "order; error: how far\n"
    "  it is from the measured step. peak memory: of activations and of what travels.\n";

double ms(double seconds) { return seconds * 1e3; }

base::Json ms_or_null(std::optional<double> seconds) {
  return seconds ? base::Json(ms(*seconds)) : base::Json();
}

// "12.3", or "-" if unknown.
std::string ms_text(std::optional<double> seconds) {
  return seconds ? base::text("{:.1f}", ms(*seconds)) : "-";
}

trace::CommunicationTime time_of(const trace::Exposure& exposure, measure::BenchedKind kind) {
  if (kind == measure::BenchedKind::Ep) return exposure.total;
  const auto found = exposure.kinds.find(std::string(measure::word(kind)));
  return found == exposure.kinds.end() ? trace::CommunicationTime() : found->second;
}

std::string links_of(const measure::FabricRuns& fabric) {
  return fabric.fabric && !fabric.fabric->is_free() ? grid::describe(*fabric.fabric) : "";
}

// The time added by a kind is small: the least disturbed round shows it.
double seconds_of(measure::BenchedKind kind, const measure::OverlapRun& run) {
  return kind == measure::BenchedKind::Ep ? run.step_seconds() : run.best_seconds();
}

// Plain order on free links.
const measure::OverlapRun* plain_on_free_links(const measure::OverlapBench& bench) {
  for (const measure::FabricRuns& fabric : bench.fabrics) {
    if (fabric.fabric && fabric.fabric->is_free()) return &fabric.runs.front();
  }
  return nullptr;
}

std::optional<double> added(const measure::OverlapBench& bench, const measure::OverlapRun& run) {
  const measure::OverlapRun* alone = plain_on_free_links(bench);
  if (alone == nullptr) return std::nullopt;
  return run.best_seconds() / alone->best_seconds() - 1;
}

std::optional<double> steady_added(const measure::OverlapBench& bench,
                                   const measure::OverlapOrder& order,
                                   const measure::OverlapRun& run) {
  const measure::OverlapRun* alone = plain_on_free_links(bench);
  const config::Config& config = order.config;
  if (alone == nullptr || config.model.virtual_pipeline_model_parallel_size.value_or(1) < 2) {
    return std::nullopt;
  }
  return measure::steady_seconds(run.timelines) / measure::steady_seconds(alone->timelines) - 1;
}

FabricReport report_of(const std::vector<measure::OverlapOrder>& orders,
                       measure::BenchedKind kind,
                       const measure::OverlapBench& bench,
                       const measure::FabricRuns& fabric) {
  const measure::OverlapRun& plain = fabric.runs.front();
  plan::OverlapPrediction prediction(orders.front().config,
                                     fabric.fabric,
                                     plain.timelines,
                                     seconds_of(kind, plain));
  const measure::OverlapRun* free = plain_on_free_links(bench);
  const bool is_one_rank = config::is_pretended(orders.front().config->runtime.backend);
  if (is_one_rank && free != nullptr) {
    prediction.take_compute_from(free->timelines);
    prediction.take_copies_from(free->timelines, bench.slower_beside_copies);
  }
  FabricReport report{
      .kind = kind,
      .name = fabric.name,
      .links = links_of(fabric),
      .is_free = fabric.fabric && fabric.fabric->is_free(),
      .is_one_rank = is_one_rank,
      .compute_seconds = kind != measure::BenchedKind::Ep && free != nullptr
                             ? seconds_of(kind, *free)
                             : bench.compute_seconds.value_or(prediction.compute_seconds()),
      .communication_seconds = prediction.communication_seconds(),
      .layers_compute_seconds = bench.layers_compute_seconds,
      .layers_communication_seconds = prediction.layers_communication_seconds(),
      .compute_is_simulated = !bench.compute_seconds,
      .rows = {},
      .bubbles = {}};
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const measure::OverlapRun& run = fabric.runs[i];
    const double seconds = seconds_of(kind, run);
    const double apart_seconds = trace::step_parts(run.timelines).apart_ms * 1e-3;
    const bool is_known = orders[i].nodes == measure::Nodes::OfPlain;
    const auto known = [&](auto ask) {
      return is_known ? std::optional((prediction.*ask)(orders[i].config)) : std::nullopt;
    };
    report.rows.push_back({.name = run.name,
                           .step_seconds = seconds,
                           .round_seconds = run.seconds,
                           .speedup = seconds_of(kind, plain) / seconds,
                           .time = time_of(trace::analyse(run.timelines, bench.clocks), kind),
                           .partnered = trace::partnered(run.timelines),
                           .peak_activation_bytes = run.peak_activation_bytes,
                           .predicted_seconds = known(&plan::OverlapPrediction::step_seconds),
                           .ideal_seconds = known(&plan::OverlapPrediction::ideal_seconds),
                           .layers_seconds = seconds - apart_seconds,
                           .added = added(bench, run),
                           .steady_added = steady_added(bench, orders[i], run),
                           .is_fitted = i == 0});
    const config::Config& config = orders[i].config;
    if (config.runtime.pipeline_schedule == config::PipelineSchedule::ZeroBubble) {
      report.bubbles = plan::bubbles_of(config, exec::sim::measure(run.timelines));
    }
  }
  return report;
}

std::string layers_text(const FabricReport& report) {
  return base::text(
      "of the layers: compute alone {:.1f} ms, communication alone {:.1f} ms (ratio {:.2f})\n",
      ms(report.layers_compute_seconds.value_or(0)),
      ms(report.layers_communication_seconds),
      report.ratio().value_or(0));
}

std::string layers_text(const FabricReport& report, const OverlapRow& row) {
  std::string text =
      base::text("  {:<24} {:.3f} times compute alone; layers' part {:.1f} ms, {:.2f}x",
                 "",
                 row.step_seconds / report.compute_seconds,
                 ms(row.layers_seconds),
                 report.layers_speedup(row));
  if (row.partnered.communication_ms > 0) {
    text += base::text("; with a partner {:.1f} ms: hidden_any {:.1f} %, hidden_gemm {:.1f} %",
                       row.partnered.communication_ms,
                       row.partnered.hidden_any * 100,
                       row.partnered.hidden_gemm * 100);
  }
  return text + "\n";
}

std::string heading(const FabricReport& report) {
  std::string text =
      base::text("\n{}{}{}\n", report.name, report.links.empty() ? "" : ": ", report.links);
  text += base::text(
      "compute alone {:.1f} ms{}, communication alone {:.1f} ms (simulated; {:.2f} of "
      "compute)",
      ms(report.compute_seconds),
      report.compute_is_simulated ? " (simulated)" : "",
      ms(report.communication_seconds),
      report.communication_seconds / report.compute_seconds);
  text += base::text("; the longer of the two {:.1f} ms, ideal {} ms\n",
                     ms(report.longer_alone_seconds()),
                     ms_text(report.ideal_seconds()));
  if (report.is_one_rank) text += layers_text(report);
  text += base::text("  {:<24} {:>9} {:>8} {:>10} {:>11} {:>10} {:>11} {:>10} {:>7}\n",
                     "order",
                     "step ms",
                     "speed-up",
                     "hidden_any",
                     "hidden_gemm",
                     "exposed ms",
                     "peak memory",
                     "predicted",
                     "error");
  return text;
}

std::string row_text(const OverlapRow& row) {
  const std::string text =
      base::text("  {:<24} {:>9.1f} {:>7.2f}x {:>8.1f} % {:>9.1f} % {:>10.1f} {:>11} ",
                 row.name,
                 ms(row.step_seconds),
                 row.speedup,
                 row.time.hidden_any * 100,
                 row.time.hidden_gemm * 100,
                 row.time.exposed_ms,
                 base::human_bytes(static_cast<double>(row.peak_activation_bytes)));
  if (row.is_fitted) return text + base::text("{:>10}\n", "(measured)");
  if (!row.predicted_seconds) return text + base::text("{:>10}\n", "-");
  return text + base::text("{:>10.1f} {:>+5.1f} %\n",
                           ms(*row.predicted_seconds),
                           *row.prediction_error() * 100);
}

std::string added_text(const OverlapRow& row) {
  if (!row.added) return "";
  std::string text = base::text("  {:<24} adds {:.1f} % to the step", "", *row.added * 100);
  if (row.steady_added) {
    text += base::text(", {:.1f} % outside warm-up and cool-down", *row.steady_added * 100);
  }
  return text + "\n";
}

std::string reasons_text(const OverlapRow& row) {
  const trace::Reasons& reasons = row.time.reasons;
  return base::text(
      "  {:<24} exposed: no partner {:.1f}, short cover {:.1f}, peer {:.1f}, "
      "host {:.1f} ms\n",
      "",
      reasons.no_partner_ms,
      reasons.short_cover_ms,
      reasons.peer_ms,
      reasons.host_ms);
}

std::string bubbles_text(const plan::Bubbles& bubbles) {
  return base::text(
      "  bubble of equal stages, simulated: 1F1B {:.1f} ms, zb_h1 {:.1f} ms; a micro-batch of a "
      "stage "
      "takes {:.2f} ms\n"
      "  forward, {:.2f} for input gradients, {:.2f} for weight gradients\n",
      ms(bubbles.plain),
      ms(bubbles.filled),
      ms(bubbles.forward),
      ms(bubbles.input_gradients),
      ms(bubbles.weight_gradients));
}

base::Json to_json(const plan::Bubbles& bubbles) {
  return {{"forward_ms", ms(bubbles.forward)},
          {"input_gradients_ms", ms(bubbles.input_gradients)},
          {"weight_gradients_ms", ms(bubbles.weight_gradients)},
          {"plain_ms", ms(bubbles.plain)},
          {"zb_h1_ms", ms(bubbles.filled)}};
}

base::Json number_or_null(std::optional<double> number) {
  return number ? base::Json(*number) : base::Json();
}

base::Json run_json(const FabricReport& report, const OverlapRow& row) {
  base::Json rounds = base::Json::array();
  for (const double seconds : row.round_seconds) rounds.push_back(ms(seconds));
  return {{"name", row.name},
          {"step_ms", ms(row.step_seconds)},
          {"rounds_ms", std::move(rounds)},
          {"speedup", row.speedup},
          {"over_compute_only", row.step_seconds / report.compute_seconds},
          {"layers_ms", ms(row.layers_seconds)},
          {"layers_speedup", report.layers_speedup(row)},
          {"hidden_any", row.time.hidden_any},
          {"hidden_gemm", row.time.hidden_gemm},
          {"partnered_comm_ms", row.partnered.communication_ms},
          {"partnered_hidden_any", row.partnered.hidden_any},
          {"partnered_hidden_gemm", row.partnered.hidden_gemm},
          {"exposed_ms", row.time.exposed_ms},
          {"peak_activation_bytes", row.peak_activation_bytes},
          {"predicted_ms", ms_or_null(row.predicted_seconds)},
          {"prediction_error", number_or_null(row.prediction_error())},
          {"ideal_ms", ms_or_null(row.ideal_seconds)},
          {"added", number_or_null(row.added)},
          {"steady_added", number_or_null(row.steady_added)},
          {"exposure", trace::to_json(row.time)}};
}

// Ratios with bars: communication that compute can hide, and communication as long as compute.
struct Ratios {
  double from = 0, to = 0;
  bool contain(std::optional<double> ratio) const {
    return ratio && *ratio >= from && *ratio <= to;
  }
};
constexpr Ratios kHidden{0.4, 0.8}, kNearOne{0.85, 1.15};

// Limit of the time that a kind's last order may add to the step, if the plain order adds about 30
// %.
constexpr Ratios kAdded{0.25, 0.35};
double limit_of(measure::BenchedKind kind) {
  switch (kind) {
    case measure::BenchedKind::Ep:
    case measure::BenchedKind::Cp:
      return 0.08;
    case measure::BenchedKind::Dp:
    case measure::BenchedKind::Pp:
      return 0.05;
    case measure::BenchedKind::Tp:
      return 0.12;
  }
  UNREACHABLE("kind {}", static_cast<int>(kind));
}

constexpr double kBubbleRoom = 1.03;  // factor over the expected remaining bubble of zb_h1

// A pipeline has bars outside of warm-up and cool-down, for several chunks per rank.
std::vector<Bar> bars_of_kind(const FabricReport& report) {
  std::vector<Bar> bars;
  if (report.is_free) {
    for (const OverlapRow& row : report.rows) {
      if (!row.is_fitted) bars.push_back({row.name + " adds on free links", *row.added, 0.02});
    }
    if (report.bubbles) {
      bars.push_back({"bubble of zb_h1 over that of 1F1B",
                      report.bubbles->share(),
                      report.bubbles->wanted_share() * kBubbleRoom});
    }
    return bars;
  }
  const OverlapRow& last = report.rows.back();
  if (last.is_fitted || !kAdded.contain(report.rows.front().added)) return bars;
  const bool is_pipeline = report.kind == measure::BenchedKind::Pp;
  if (const std::optional<double> added = is_pipeline ? last.steady_added : last.added) {
    bars.push_back({last.name + (is_pipeline ? " adds outside warm-up and cool-down" : " adds"),
                    *added,
                    limit_of(report.kind)});
  }
  return bars;
}

std::string unjudged_text(const FabricReport& report) {
  if (is_judged(report)) return "";
  return base::text(
      "  NOT JUDGED plain adds {:.0f} %, not {:.0f} to {:.0f} %: run it again while nothing else "
      "uses the cores\n",
      *report.rows.front().added * 100,
      kAdded.from * 100,
      kAdded.to * 100);
}

}  // namespace

bool is_judged(const FabricReport& report) {
  const std::optional<double> added = report.rows.front().added;
  return report.kind == measure::BenchedKind::Ep || report.is_free || !added ||
         kAdded.contain(added);
}

std::vector<Bar> bars_of(const FabricReport& report) {
  if (report.kind != measure::BenchedKind::Ep) return bars_of_kind(report);
  std::vector<Bar> bars;
  if (!report.is_one_rank) return bars;
  const OverlapRow& plain = report.rows.front();
  const OverlapRow& last = report.rows.back();
  const auto at_least = [&](std::string name, double value, double limit) {
    bars.push_back({std::move(name), value, limit, Bar::Kind::AtLeast});
  };
  if (kHidden.contain(report.ratio())) {
    bars.push_back(
        {last.name + " over compute alone", last.step_seconds / report.compute_seconds, 1.08});
    at_least(last.name + ", hidden_any with a partner", last.partnered.hidden_any, 0.97);
    at_least(last.name + ", hidden_gemm with a partner", last.partnered.hidden_gemm, 0.75);
  }
  if (kNearOne.contain(report.ratio())) {
    at_least(last.name + ", layers' part, faster than plain", report.layers_speedup(last), 1.6);
  }
  for (const OverlapRow& row : report.rows) {
    if (row.is_fitted) continue;
    if (report.is_free) {
      bars.push_back({row.name + " over plain", row.step_seconds / plain.step_seconds, 1.01});
    }
    bars.push_back(
        {row.name + ", prediction error", std::abs(row.prediction_error().value_or(0)), 0.06});
  }
  return bars;
}

std::vector<FabricReport> report_of(const std::vector<measure::OverlapOrder>& orders,
                                    measure::BenchedKind kind,
                                    const measure::OverlapBench& bench) {
  std::vector<FabricReport> reports;
  for (const measure::FabricRuns& fabric : bench.fabrics) {
    reports.push_back(report_of(orders, kind, bench, fabric));
  }
  return reports;
}

base::Json to_json(const std::vector<FabricReport>& reports) {
  base::Json fabrics = base::Json::array();
  for (const FabricReport& report : reports) {
    base::Json runs = base::Json::array();
    for (const OverlapRow& row : report.rows) runs.push_back(run_json(report, row));
    base::Json bars = base::Json::array();
    for (const Bar& bar : bars_of(report)) bars.push_back(to_json(bar));
    const std::optional<double> layers_compute = report.layers_compute_seconds;
    const std::optional<double> ratio = report.ratio();
    fabrics.push_back({{"name", report.name},
                       {"links", report.links},
                       {"compute_only_ms", ms(report.compute_seconds)},
                       {"compute_only_is_simulated", report.compute_is_simulated},
                       {"comm_only_ms", ms(report.communication_seconds)},
                       {"layers_compute_only_ms",
                        layers_compute ? base::Json(ms(*layers_compute)) : base::Json()},
                       {"layers_comm_only_ms", ms(report.layers_communication_seconds)},
                       {"ratio", number_or_null(ratio)},
                       {"longer_alone_ms", ms(report.longer_alone_seconds())},
                       {"ideal_ms", ms_or_null(report.ideal_seconds())},
                       {"runs", std::move(runs)},
                       {"judged", is_judged(report)},
                       {"bars", std::move(bars)}});
    if (report.bubbles) fabrics.back()["bubble"] = to_json(*report.bubbles);
  }
  base::Json json{{"mode", measure::word(reports.front().kind)}, {"fabrics", std::move(fabrics)}};
  if (reports.front().is_one_rank) json["pretended"] = true;
  return json;
}

std::string to_text(const std::vector<FabricReport>& reports) {
  std::string text;
  for (const FabricReport& report : reports) {
    text += heading(report);
    for (const OverlapRow& row : report.rows) {
      text += row_text(row) + reasons_text(row);
      if (report.kind != measure::BenchedKind::Ep) text += added_text(row);
      if (report.is_one_rank) text += layers_text(report, row);
    }
    if (report.bubbles) text += bubbles_text(*report.bubbles);
    for (const Bar& bar : bars_of(report)) text += "  " + to_text(bar) + "\n";
    if (report.kind != measure::BenchedKind::Ep) text += unjudged_text(report);
  }
  const bool is_one_rank = reports.front().is_one_rank;
  text += is_one_rank ? kOneRankLegend : kComputeLegend;
  if (reports.front().kind != measure::BenchedKind::Ep) {
    text += base::text(
        "  hidden and exposed are of {} communication alone. adds: what the best round takes "
        "longer "
        "than that of the\n  plain order on free links.\n",
        measure::word(reports.front().kind));
  }
  return text + kLegend + trace::legend("  ");
}

std::string to_svg(const measure::OverlapBench& bench) {
  const measure::FabricRuns& fabric = bench.fabrics.back();
  trace::Picture picture{.title = base::text("weft bench overlap: {}", fabric.name), .rows = {}};
  for (const measure::OverlapRun& run : fabric.runs) {
    picture.rows.push_back({.caption = run.name, .timelines = run.timelines});
  }
  return trace::to_svg(picture, {.to_ms = kPictured * ms(fabric.runs.front().step_seconds())});
}

}  // namespace weft::cli
