#include "weft/cli/bench/gpu_bench_report.h"

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

using base::Json;
using base::text;
using measure::BatchTime;
using measure::WorkUnit;

constexpr double kTera = 1e12, kGiga = 1e9;
constexpr double kLeastWholeRatio = 1.3, kLeastSingleRatio = 1.2, kMostRest = 0.20;
constexpr std::size_t kOperationsShown = 24;

double scale_of(WorkUnit unit) { return unit == WorkUnit::Flop ? kTera : kGiga; }
const char* unit_of(WorkUnit unit) { return unit == WorkUnit::Flop ? "TFLOP/s" : "GB/s"; }

void add_ceilings(const measure::DeviceCeilings& ceilings, report::Document& document) {
  report::Document& part = document.section("ceilings", "ceilings");
  const report::Shown rate{1, "GB/s"};
  part.value("gemm_tflops", "bf16 product 8192^3", ceilings.flops / kTera, {1, "TFLOP/s"});
  part.value("copy_gbps", "copy, read + written", ceilings.copy / kGiga, rate);
  part.value("fill_gbps", "fill, written alone", ceilings.fill / kGiga, rate);
  part.value("link_gbps", "host link, pinned: to the card", ceilings.upload / kGiga, rate);
  part.value("link_from_card_gbps", "from the card", ceilings.download / kGiga, rate);
  part.value("link_both_ways_gbps", "each at once", ceilings.both / kGiga, rate);
}

void add_lines(const std::vector<GpuLine>& lines, report::Document& document) {
  document.line("");
  report::Table& table = document.table("kernels",
                                        {{"section", "part"},
                                         {"name", "operation"},
                                         {"shape", "shape"},
                                         {"ms", "ms", {3}},
                                         {"value", "rate", {1}},
                                         {"unit", "unit"},
                                         {"ceiling", ""},
                                         {"share", "of ceiling", report::percent()},
                                         {"peer", "peer", {1}},
                                         {"ratio", "ratio"},
                                         {"peer_name", "name of the peer"}});
  for (const GpuLine& line : lines) {
    const double scale = scale_of(line.rate.unit);
    const bool has_peer = line.peer_seconds.has_value();
    table.row({word(line.section),
               line.rate.name,
               line.rate.shape,
               line.rate.seconds * 1e3,
               line.rate.per_second() / scale,
               unit_of(line.rate.unit),
               line.ceiling / scale,
               line.share(),
               has_peer ? Json(line.rate.work / *line.peer_seconds / scale) : Json(),
               report::or_null(line.ratio()),
               has_peer ? Json(line.peer) : Json()});
  }
}

Json json_of(const GpuTile& tile) {
  Json json{{"name", tile.name},
            {"pass", kernels::hopper::word(tile.desc.pass)},
            {"columns", tile.desc.n},
            {"best", tile.choice.best < 0 ? Json() : Json(tile.choice.best)},
            {"candidates", Json::array()}};
  for (const kernels::hopper::TileChoice::Row& row : tile.choice.all()) {
    json["candidates"].push_back({{"m", row.tile.m},
                                  {"n", row.tile.n},
                                  {"k", row.tile.k},
                                  {"stages", row.tile.stages},
                                  {"cluster", row.tile.cluster},
                                  {"consumer_registers", row.tile.consumer_registers},
                                  {"shared_bytes", row.shared_bytes},
                                  {"covered_columns", row.covered},
                                  {"cost", row.cost},
                                  {"verdict", kernels::hopper::word(row.verdict)}});
  }
  return json;
}

void add_tiles(const std::vector<GpuTile>& tiles, report::Document& document) {
  Json all = Json::array();
  if (!tiles.empty()) {
    document.line("\ntiles of the experts' products, of candidates with relative costs");
  }
  for (const GpuTile& tile : tiles) {
    all.push_back(json_of(tile));
    const std::string choice = kernels::hopper::to_text(tile.desc, tile.choice);
    document.line(text("{} {}", tile.name, base::trim(choice)));
  }
  document.json("tiles", std::move(all));
}

void add_clock(const GpuClock& clock, report::Document& document) {
  report::Document& part = document.section("clock", "clock");
  part.value("most_mhz", "highest", clock.most_mhz, {0, "MHz"});
  part.value("most_watts", "power limit", clock.most_watts, {0, "W"});
  report::Table& parts =
      part.table("parts",
                 {{"name", "part"},
                  {"samples", "samples"},
                  {"lowest_mhz", "lowest MHz", {0}},
                  {"median_mhz", "median MHz", {0}},
                  {"highest_mhz", "highest MHz", {0}},
                  {"median_watts", "median W", {0}},
                  {"held_back_by_power", "held back by power", report::percent(0)},
                  {"held_back_by_heat", "by heat", report::percent(0)}});
  for (const auto& [name, span] : clock.parts) {
    parts.row({name,
               span.samples,
               span.lowest_mhz,
               span.median_mhz,
               span.highest_mhz,
               span.median_watts,
               span.power_share,
               span.heat_share});
  }
}

void add_batch(const BatchTime& batch,
               const measure::DeviceCeilings& ceilings,
               const std::optional<double>& peer_seconds,
               report::Document& document) {
  document.json("sequences", batch.sequences);
  document.value("ms",
                 text("{} x forward, backward", batch.sequences),
                 batch.seconds * 1e3,
                 {2, "ms"});
  document.value("tokens_per_second", "tokens/s", batch.tokens_per_second, {0});
  document.value("tflops",
                 "rate",
                 batch.flops_per_second / kTera,
                 {1, "TFLOP/s"},
                 text("{:.1f} % of 8192^3", batch.flops_per_second / ceilings.flops * 100));
  document.value("peer_ms", "peer", report::or_null(peer_seconds, 1e3), {2, "ms"});
  document.value("ratio",
                 "its tokens/s",
                 peer_seconds ? Json(*peer_seconds / batch.seconds) : Json(),
                 {},
                 "times");
}

void add_step(const GpuBench& bench, report::Document& document) {
  const measure::DeviceStep& step = *bench.step;
  const StepPeer none, &peer = bench.step_peer ? *bench.step_peer : none;
  const double traced = step.shares.total();
  report::Document& part = document.section("step", text("step: {}", bench.model));
  add_batch(step.whole, bench.ceilings, peer.whole_seconds, part);
  if (step.single) {
    add_batch(*step.single, bench.ceilings, peer.single_seconds, part.section("single", "alone"));
  } else {
    part.json("single", Json());
  }
  if (bench.step_peer) {
    part.line(text("peer: {}; losses equal to {:.0e}", peer.name, peer.loss_difference));
  }
  part.json("peer_name", bench.step_peer ? Json(peer.name) : Json());
  part.json("loss_difference", bench.step_peer ? Json(peer.loss_difference) : Json());
  part.json("loss", step.loss);
  part.value("with_optimizer_ms", "with the optimizer", step.step_seconds * 1e3, {2, "ms"});
  part.value("issue_us_per_node", "host, a node", step.issue_seconds_per_node * 1e6, {1, "us"});
  part.value("host_ahead_ms",
             "host ahead",
             step.host_ahead_seconds * 1e3,
             {2, "ms"},
             "when all was issued");
  part.value("peak_bytes", "memory", step.peak_bytes, {.form = report::Shown::Form::Bytes});
  part.value("traced_ms", "traced", traced * 1e3, {2, "ms"}, "of it:");
  report::Document& shares = part.section("shares");
  shares.value("products", "products", step.shares.products / traced, report::percent());
  shares.value("attention", "attention", step.shares.attention / traced, report::percent());
  shares.value("rest", "the rest", step.shares.memory / traced, report::percent());
  shares.value("idle", "idle", step.shares.idle / traced, report::percent());
  part.line("");
  report::Table& operations = part.table("operations",
                                         {{"name", "operation"},
                                          {"calls", "calls"},
                                          {"ms", "ms", {3}},
                                          {"", "of it", report::percent()}});
  for (std::size_t i = 0; i < step.operations.size(); ++i) {
    const measure::OperationTime& time = step.operations[i];
    operations.row({time.name, time.calls, time.seconds * 1e3, time.seconds / traced},
                   i < kOperationsShown ? report::Table::In::Both : report::Table::In::JsonOnly);
  }
}

void add_bars(const GpuLine& line, std::vector<report::Bar>& bars) {
  const std::string what = text("{}, {}", line.rate.name, line.rate.shape);
  const auto add = [&](const std::string& name, double value, double limit) {
    bars.push_back(
        {.name = name, .value = value, .limit = limit, .kind = report::Bar::Kind::AtLeast});
  };
  if (line.least_share)
    add(text("{}: share of its ceiling", what), line.share(), *line.least_share);
  if (line.least_ratio && line.peer_seconds) {
    add(text("{}: over {}", what, line.peer), *line.ratio(), *line.least_ratio);
  }
  if (line.least_rate) {
    const double scale = scale_of(line.rate.unit);
    add(text("{}: {}", what, unit_of(line.rate.unit)),
        line.rate.per_second() / scale,
        *line.least_rate / scale);
  }
}

void add_bars(const GpuBench& bench,
              const measure::DeviceStep& step,
              std::vector<report::Bar>& bars) {
  const auto add_ratio = [&](const BatchTime& batch,
                             const std::optional<double>& peer_seconds,
                             double least) {
    if (!peer_seconds) return;
    bars.push_back({.name = text("step of {} sequences: tokens/s over Transformers + torch.compile",
                                 batch.sequences),
                    .value = *peer_seconds / batch.seconds,
                    .limit = least,
                    .kind = report::Bar::Kind::AtLeast});
  };
  if (bench.step_peer) {
    add_ratio(step.whole, bench.step_peer->whole_seconds, kLeastWholeRatio);
    if (step.single) add_ratio(*step.single, bench.step_peer->single_seconds, kLeastSingleRatio);
  }
  bars.push_back({.name = "step: share of what is neither product nor attention",
                  .value = step.shares.rest_share(step.whole.seconds),
                  .limit = kMostRest,
                  .kind = report::Bar::Kind::AtMost});
}

}  // namespace

std::string_view word(GpuSection section) {
  switch (section) {
    case GpuSection::Kernels:
      return "kernels";
    case GpuSection::Products:
      return "products";
    case GpuSection::Attention:
      return "attention";
  }
  UNREACHABLE("a section");
}

std::vector<report::Bar> bars_of(const GpuBench& bench) {
  std::vector<report::Bar> bars;
  for (const GpuLine& line : bench.lines) add_bars(line, bars);
  if (bench.step) add_bars(bench, *bench.step, bars);
  return bars;
}

report::Document document_of(const GpuBench& bench) {
  report::Document document;
  document.line(bench.card);
  document.json("card", bench.card);
  document.json("model", bench.model);
  add_ceilings(bench.ceilings, document);
  add_lines(bench.lines, document);
  add_tiles(bench.tiles, document);
  document.json("step", Json());
  if (bench.step) add_step(bench, document);
  document.json("clock", Json());
  if (bench.clock) add_clock(*bench.clock, document);
  document.line("");
  document.bars(bars_of(bench));
  document.json("peer_failures", bench.peer_failures);
  for (const std::string& failure : bench.peer_failures) document.line("NO PEER " + failure);
  return document;
}

}  // namespace weft::cli
