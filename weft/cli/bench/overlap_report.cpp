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
    "\n  compute alone: the plain order on free links; communication alone: the plain order "
    "simulated, with the measured\n"
    "  costs of its communication and no time for compute.";
constexpr const char* kOneRankLegend =
    "\n  One rank of a pretended world runs; its peers are taken to do what it does. Free links: "
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
    "measured beforehand.";
constexpr const char* kLegend =
    "  ideal: the simulated step where only compute and the wire take time, of the last order that "
    "is "
    "predicted. None of\n"
    "  the three is a bound: ranks also wait for each other, which overlap evens out.\n"
    "  predicted: the step time simulated beforehand, from node costs measured in the plain "
    "order; error: how far\n"
    "  it is from the measured step. peak memory: of activations and of what travels.";

double ms(double seconds) { return seconds * 1e3; }

base::Json ms_or_null(const std::optional<double>& seconds) {
  return report::or_null(seconds, 1e3);
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

// Rows below a run's: reasons for exposed communication, its share with a partner.
void add_notes(const OverlapRow& row, report::Table& runs) {
  const trace::Reasons& reasons = row.time.reasons;
  runs.note(
      base::text("exposed: no partner {:.1f}, short cover {:.1f}, peer {:.1f}, host {:.1f} ms",
                 reasons.no_partner_ms,
                 reasons.short_cover_ms,
                 reasons.peer_ms,
                 reasons.host_ms));
  if (row.partnered.communication_ms <= 0) return;
  runs.note(base::text("with a partner {:.1f} ms: hidden_any {:.1f} %, hidden_gemm {:.1f} %",
                       row.partnered.communication_ms,
                       row.partnered.hidden_any * 100,
                       row.partnered.hidden_gemm * 100));
}

void add_runs(const FabricReport& report, report::Document& document) {
  // Columns of one rank of a pretended world, and of kinds that add to the step.
  const auto of_one = [&](const char* heading) { return report.is_one_rank ? heading : ""; };
  const auto of_kind = [&](const char* heading) {
    return report.kind == measure::BenchedKind::Ep ? "" : heading;
  };
  const report::Shown percent = report::percent();
  report::Table& runs = document.table(
      "runs",
      {{"name", "order"},
       {"step_ms", "step ms", {1}},
       {"rounds_ms", ""},
       {"speedup", "speed-up"},
       {"over_compute_only", of_one("over compute alone"), {3}},
       {"layers_ms", of_one("layers ms"), {1}},
       {"layers_speedup", of_one("speed-up")},
       {"hidden_any", "hidden_any", percent},
       {"hidden_gemm", "hidden_gemm", percent},
       {"partnered_comm_ms", ""},
       {"partnered_hidden_any", ""},
       {"partnered_hidden_gemm", ""},
       {"exposed_ms", "exposed ms", {1}},
       {"peak_activation_bytes", "peak memory", {.form = report::Shown::Form::Bytes}},
       {"predicted_ms", ""},
       {"prediction_error", ""},
       {"", "predicted", {1}},
       {"", "error", report::percent(1, report::Shown::Form::Signed)},
       {"ideal_ms", ""},
       {"added", of_kind("adds"), percent},
       {"steady_added", of_kind("outside warm-up"), percent},
       {"exposure", ""}});
  for (const OverlapRow& row : report.rows) {
    std::vector<double> rounds;
    for (const double seconds : row.round_seconds) rounds.push_back(ms(seconds));
    const base::Json predicted = ms_or_null(row.predicted_seconds);
    const base::Json error = report::or_null(row.prediction_error());
    runs.row({row.name,
              ms(row.step_seconds),
              std::move(rounds),
              row.speedup,
              row.step_seconds / report.compute_seconds,
              ms(row.layers_seconds),
              report.layers_speedup(row),
              row.time.hidden_any,
              row.time.hidden_gemm,
              row.partnered.communication_ms,
              row.partnered.hidden_any,
              row.partnered.hidden_gemm,
              row.time.exposed_ms,
              row.peak_activation_bytes,
              predicted,
              error,
              row.is_fitted ? base::Json("(measured)") : predicted,
              row.is_fitted ? base::Json() : error,
              ms_or_null(row.ideal_seconds),
              report::or_null(row.added),
              report::or_null(row.steady_added),
              trace::to_json(row.time)});
    add_notes(row, runs);
  }
}

void add_bubbles(const plan::Bubbles& bubbles, report::Document& document) {
  report::Document& part = document.section("bubble", "bubble of equal stages, simulated");
  part.value("plain_ms", "1F1B", ms(bubbles.plain), {1, "ms"});
  part.value("zb_h1_ms", "zb_h1", ms(bubbles.filled), {1, "ms"});
  part.value("forward_ms", "a micro-batch of a stage, forward", ms(bubbles.forward), {2, "ms"});
  part.value("input_gradients_ms", "input gradients", ms(bubbles.input_gradients), {2, "ms"});
  part.value("weight_gradients_ms", "weight gradients", ms(bubbles.weight_gradients), {2, "ms"});
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
std::vector<report::Bar> bars_of_kind(const FabricReport& report) {
  std::vector<report::Bar> bars;
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

void add_fabric(const FabricReport& report, report::Document& document) {
  const double compute = report.compute_seconds, communication = report.communication_seconds;
  // Values without a label are in JSON alone.
  const auto of_one = [&](const char* label) { return report.is_one_rank ? label : ""; };
  const report::Shown shown{1, "ms"};
  document.json("name", report.name);
  document.json("links", report.links);
  document.value("compute_only_ms",
                 "compute alone",
                 ms(compute),
                 shown,
                 report.compute_is_simulated ? "simulated" : "");
  document.json("compute_only_is_simulated", report.compute_is_simulated);
  document.value("comm_only_ms",
                 "communication alone",
                 ms(communication),
                 shown,
                 base::text("simulated; {:.2f} of compute", communication / compute));
  document.value("longer_alone_ms", "the longer of both", ms(report.longer_alone_seconds()), shown);
  document.value("ideal_ms", "ideal", ms_or_null(report.ideal_seconds()), shown);
  document.value("layers_compute_only_ms",
                 of_one("of the layers: compute alone"),
                 ms_or_null(report.layers_compute_seconds),
                 shown);
  document.value("layers_comm_only_ms",
                 of_one("of the layers: communication alone"),
                 ms(report.layers_communication_seconds),
                 shown);
  document.value("ratio", of_one("ratio"), report::or_null(report.ratio()));
  document.line("");
  add_runs(report, document);
  if (report.bubbles) add_bubbles(*report.bubbles, document);
  document.bars(bars_of(report));
  document.json("judged", is_judged(report));
  if (is_judged(report)) return;
  document.line(
      base::text("NOT JUDGED plain adds {:.0f} %, not {:.0f} to {:.0f} %: run it again while "
                 "nothing else uses the cores",
                 *report.rows.front().added * 100,
                 kAdded.from * 100,
                 kAdded.to * 100));
}

}  // namespace

bool is_judged(const FabricReport& report) {
  const std::optional<double> added = report.rows.front().added;
  return report.kind == measure::BenchedKind::Ep || report.is_free || !added ||
         kAdded.contain(added);
}

std::vector<report::Bar> bars_of(const FabricReport& report) {
  if (report.kind != measure::BenchedKind::Ep) return bars_of_kind(report);
  std::vector<report::Bar> bars;
  if (!report.is_one_rank) return bars;
  const OverlapRow& plain = report.rows.front();
  const OverlapRow& last = report.rows.back();
  const auto at_least = [&](std::string name, double value, double limit) {
    bars.push_back({std::move(name), value, limit, report::Bar::Kind::AtLeast});
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

report::Document document_of(const std::vector<FabricReport>& reports) {
  const bool is_one_rank = reports.front().is_one_rank;
  const measure::BenchedKind kind = reports.front().kind;
  report::Document document;
  document.json("mode", measure::word(kind));
  if (is_one_rank) document.json("pretended", true);
  for (const FabricReport& report : reports) {
    add_fabric(
        report,
        document.element("fabrics",
                         report.links.empty() ? report.name : report.name + ": " + report.links));
  }
  document.line(is_one_rank ? kOneRankLegend : kComputeLegend);
  if (kind != measure::BenchedKind::Ep) {
    document.line(
        base::text("  hidden and exposed are of {} communication alone. adds: what the best round "
                   "takes longer than that of the\n  plain order on free links.",
                   measure::word(kind)));
  }
  document.line(kLegend);
  document.line(std::string(base::trim(trace::legend("  "))));
  return document;
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
