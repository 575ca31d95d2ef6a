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

Json json_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

std::string ceilings_text(const measure::DeviceCeilings& ceilings) {
  return text(
      "ceilings\n"
      "  bf16 product 8192^3    {:9.1f} TFLOP/s\n"
      "  copy, read + written   {:9.1f} GB/s\n"
      "  fill, written alone    {:9.1f} GB/s\n"
      "  host link, pinned      {:9.1f} GB/s to the card, {:.1f} from it, {:.1f} each at once\n",
      ceilings.flops / kTera,
      ceilings.copy / kGiga,
      ceilings.fill / kGiga,
      ceilings.upload / kGiga,
      ceilings.download / kGiga,
      ceilings.both / kGiga);
}

std::string clock_text(const GpuClock& clock) {
  std::string all = text("\nclock, at most {:.0f} MHz; power, at most {:.0f} W\n",
                         clock.most_mhz,
                         clock.most_watts);
  for (const auto& [name, span] : clock.parts) {
    all += text("  {:<22} {:5.0f} MHz ({:.0f} to {:.0f}), {:.0f} W",
                name,
                span.median_mhz,
                span.lowest_mhz,
                span.highest_mhz,
                span.median_watts);
    const auto add = [&](const char* what, double share) {
      if (share > 0) all += text("; held back by {} for {:.0f} % of the time", what, share * 100);
    };
    add("its power limit", span.power_share);
    add("its temperature", span.heat_share);
    all += "\n";
  }
  return all;
}

std::string heading(GpuSection section) {
  const bool moves = section == GpuSection::Kernels;
  return text("\n{:<40} {:>22} {:>9} {:>9} {:>9} {:>9} {:>7}\n",
              word(section),
              "shape",
              "ms",
              moves ? "GB/s" : "TFLOP/s",
              moves ? "of copy" : "of 8192^3",
              "peer",
              "ratio");
}

std::string line_text(const GpuLine& line) {
  const double scale = scale_of(line.rate.unit);
  std::string peer = "-", ratio = "-";
  if (line.peer_seconds) {
    peer = text("{:.1f}", line.rate.work / *line.peer_seconds / scale);
    ratio = text("{:.2f}", *line.ratio());
  }
  return text("  {:<38} {:>22} {:>9.3f} {:>9.1f} {:>8.1f}% {:>9} {:>7} {}\n",
              line.rate.name,
              line.rate.shape,
              line.rate.seconds * 1e3,
              line.rate.per_second() / scale,
              line.share() * 100,
              peer,
              ratio,
              line.peer);
}

std::string tiles_text(const std::vector<GpuTile>& tiles) {
  std::string all = "\ntiles of the experts' products, of candidates with relative costs\n";
  for (const GpuTile& tile : tiles) {
    all += text("{} {}", tile.name, kernels::hopper::to_text(tile.desc, tile.choice));
  }
  return all;
}

std::string batch_text(const BatchTime& batch,
                       const measure::DeviceCeilings& ceilings,
                       const std::optional<double>& peer_seconds) {
  std::string all =
      text("  {:<22} {:9.2f} ms  {:.0f} tokens/s, {:.1f} TFLOP/s ({:.1f} % of 8192^3)",
           text("{} x forward, backward", batch.sequences),
           batch.seconds * 1e3,
           batch.tokens_per_second,
           batch.flops_per_second / kTera,
           batch.flops_per_second / ceilings.flops * 100);
  if (peer_seconds) {
    all += text("; peer {:.2f} ms: {:.2f} times its tokens/s",
                *peer_seconds * 1e3,
                *peer_seconds / batch.seconds);
  }
  return all + "\n";
}

std::string shares_text(const measure::TimeShares& shares) {
  const auto part = [&](const char* name, double seconds) {
    return text("{} {:.2f} ms ({:.1f} %)", name, seconds * 1e3, seconds / shares.total() * 100);
  };
  return text("  of {:.2f} ms traced      {}, {}, {}, {}\n",
              shares.total() * 1e3,
              part("products", shares.products),
              part("attention", shares.attention),
              part("the rest", shares.memory),
              part("idle", shares.idle));
}

std::string operations_text(const measure::DeviceStep& step) {
  std::string all = text("\n  {:<38} {:>6} {:>9} {:>9}\n", "operation", "calls", "ms", "of it");
  for (std::size_t i = 0; i < std::min(step.operations.size(), kOperationsShown); ++i) {
    const measure::OperationTime& time = step.operations[i];
    all += text("  {:<38} {:>6} {:>9.3f} {:>8.1f}%\n",
                time.name,
                time.calls,
                time.seconds * 1e3,
                time.seconds / step.shares.total() * 100);
  }
  return all;
}

std::string step_text(const GpuBench& bench) {
  const measure::DeviceStep& step = *bench.step;
  const StepPeer none, &peer = bench.step_peer ? *bench.step_peer : none;
  std::string all = text("\nstep: {}\n", bench.model);
  all += batch_text(step.whole, bench.ceilings, peer.whole_seconds);
  if (step.single) all += batch_text(*step.single, bench.ceilings, peer.single_seconds);
  if (bench.step_peer) {
    all += text("  peer                   {}; losses equal to {:.0e}\n",
                peer.name,
                peer.loss_difference);
  }
  all += text("  with the optimizer     {:9.2f} ms\n", step.step_seconds * 1e3);
  all += shares_text(step.shares);
  all += text("  host                   {:.1f} us a node; {:.2f} ms ahead when all was issued\n",
              step.issue_seconds_per_node * 1e6,
              step.host_ahead_seconds * 1e3);
  all += text("  memory                 {} at its peak\n",
              base::human_bytes(static_cast<double>(step.peak_bytes)));
  return all + operations_text(step);
}

Json json_of(const GpuLine& line) {
  const double scale = scale_of(line.rate.unit);
  Json json{{"section", word(line.section)},
            {"name", line.rate.name},
            {"shape", line.rate.shape},
            {"ms", line.rate.seconds * 1e3},
            {"value", line.rate.per_second() / scale},
            {"unit", unit_of(line.rate.unit)},
            {"ceiling", line.ceiling / scale},
            {"share", line.share()}};
  json["peer"] = line.peer_seconds ? Json(line.rate.work / *line.peer_seconds / scale) : Json();
  json["peer_name"] = line.peer_seconds ? Json(line.peer) : Json();
  json["ratio"] = json_or_null(line.ratio());
  return json;
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

Json json_of(const GpuClock& clock) {
  Json json{{"most_mhz", clock.most_mhz},
            {"most_watts", clock.most_watts},
            {"parts", Json::array()}};
  for (const auto& [name, span] : clock.parts) {
    json["parts"].push_back({{"name", name},
                             {"samples", span.samples},
                             {"lowest_mhz", span.lowest_mhz},
                             {"median_mhz", span.median_mhz},
                             {"highest_mhz", span.highest_mhz},
                             {"median_watts", span.median_watts},
                             {"held_back_by_power", span.power_share},
                             {"held_back_by_heat", span.heat_share}});
  }
  return json;
}

Json json_of(const BatchTime& batch, const std::optional<double>& peer_seconds) {
  Json json{{"sequences", batch.sequences},
            {"ms", batch.seconds * 1e3},
            {"tokens_per_second", batch.tokens_per_second},
            {"tflops", batch.flops_per_second / kTera}};
  json["peer_ms"] = peer_seconds ? Json(*peer_seconds * 1e3) : Json();
  json["ratio"] = peer_seconds ? Json(*peer_seconds / batch.seconds) : Json();
  return json;
}

Json step_json(const GpuBench& bench) {
  const measure::DeviceStep& step = *bench.step;
  const StepPeer none, &peer = bench.step_peer ? *bench.step_peer : none;
  Json json = json_of(step.whole, peer.whole_seconds);
  json["single"] = step.single ? json_of(*step.single, peer.single_seconds) : Json();
  json["peer_name"] = bench.step_peer ? Json(peer.name) : Json();
  json["loss_difference"] = bench.step_peer ? Json(peer.loss_difference) : Json();
  json["with_optimizer_ms"] = step.step_seconds * 1e3;
  json["loss"] = step.loss;
  json["traced_ms"] = step.shares.total() * 1e3;
  json["shares"] = {{"products", step.shares.products / step.shares.total()},
                    {"attention", step.shares.attention / step.shares.total()},
                    {"rest", step.shares.memory / step.shares.total()},
                    {"idle", step.shares.idle / step.shares.total()}};
  json["issue_us_per_node"] = step.issue_seconds_per_node * 1e6;
  json["host_ahead_ms"] = step.host_ahead_seconds * 1e3;
  json["peak_bytes"] = step.peak_bytes;
  json["operations"] = Json::array();
  for (const measure::OperationTime& time : step.operations) {
    json["operations"].push_back(
        {{"name", time.name}, {"calls", time.calls}, {"ms", time.seconds * 1e3}});
  }
  return json;
}

void add_bars(const GpuLine& line, std::vector<Bar>& bars) {
  const std::string what = text("{}, {}", line.rate.name, line.rate.shape);
  const auto add = [&](const std::string& name, double value, double limit) {
    bars.push_back({.name = name, .value = value, .limit = limit, .kind = Bar::Kind::AtLeast});
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

void add_bars(const GpuBench& bench, const measure::DeviceStep& step, std::vector<Bar>& bars) {
  const auto add_ratio = [&](const BatchTime& batch,
                             const std::optional<double>& peer_seconds,
                             double least) {
    if (!peer_seconds) return;
    bars.push_back({.name = text("step of {} sequences: tokens/s over Transformers + torch.compile",
                                 batch.sequences),
                    .value = *peer_seconds / batch.seconds,
                    .limit = least,
                    .kind = Bar::Kind::AtLeast});
  };
  if (bench.step_peer) {
    add_ratio(step.whole, bench.step_peer->whole_seconds, kLeastWholeRatio);
    if (step.single) add_ratio(*step.single, bench.step_peer->single_seconds, kLeastSingleRatio);
  }
  bars.push_back({.name = "step: share of what is neither product nor attention",
                  .value = step.shares.rest_share(step.whole.seconds),
                  .limit = kMostRest,
                  .kind = Bar::Kind::AtMost});
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

std::vector<Bar> bars_of(const GpuBench& bench) {
  std::vector<Bar> bars;
  for (const GpuLine& line : bench.lines) add_bars(line, bars);
  if (bench.step) add_bars(bench, *bench.step, bars);
  return bars;
}

std::string to_text(const GpuBench& bench) {
  std::string all = text("{}\n{}", bench.card, ceilings_text(bench.ceilings));
  std::optional<GpuSection> open;
  for (const GpuLine& line : bench.lines) {
    if (open != line.section) all += heading(line.section);
    open = line.section;
    all += line_text(line);
  }
  if (!bench.tiles.empty()) all += tiles_text(bench.tiles);
  if (bench.step) all += step_text(bench);
  if (bench.clock) all += clock_text(*bench.clock);
  const std::vector<Bar> bars = bars_of(bench);
  if (!bars.empty()) all += "\nbars\n";
  for (const Bar& bar : bars) all += text("  {}\n", to_text(bar));
  for (const std::string& failure : bench.peer_failures) all += text("  NO PEER {}\n", failure);
  return all;
}

Json to_json(const GpuBench& bench) {
  Json json{{"card", bench.card},
            {"model", bench.model},
            {"ceilings",
             {{"gemm_tflops", bench.ceilings.flops / kTera},
              {"copy_gbps", bench.ceilings.copy / kGiga},
              {"fill_gbps", bench.ceilings.fill / kGiga},
              {"link_gbps", bench.ceilings.upload / kGiga},
              {"link_from_card_gbps", bench.ceilings.download / kGiga},
              {"link_both_ways_gbps", bench.ceilings.both / kGiga}}},
            {"clock", bench.clock ? json_of(*bench.clock) : Json()},
            {"kernels", Json::array()}};
  for (const GpuLine& line : bench.lines) json["kernels"].push_back(json_of(line));
  json["tiles"] = Json::array();
  for (const GpuTile& tile : bench.tiles) json["tiles"].push_back(json_of(tile));
  json["step"] = bench.step ? step_json(bench) : Json();
  json["bars"] = Json::array();
  for (const Bar& bar : bars_of(bench)) json["bars"].push_back(to_json(bar));
  json["peer_failures"] = bench.peer_failures;
  return json;
}

}  // namespace weft::cli
