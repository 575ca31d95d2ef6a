#include "weft/cli/bench/dispatch_report.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

using base::Json;
using base::text;
using derive::WireTraffic;
using measure::DispatcherRun;

constexpr double kMebi = 1024.0 * 1024;

const DispatcherRun& run_of(const DispatchReport& report, std::string_view name) {
  const auto found = std::ranges::find(report.bench.runs, name, &DispatcherRun::name);
  CHECK(found != report.bench.runs.end(), "no {} among the runs", name);
  return *found;
}

bool has_bar_shape(const DispatchReport& report) {
  const config::ModelConfig& model = report.config.model;
  return report.links_chosen && model.experts() == 64 && model.moe_router_topk == 8 &&
         model.expert_model_parallel_size == 8 && report.config.runtime.ranks_per_node == 4;
}

Json json_of(const WireTraffic& traffic) {
  return {{"payload_bytes", traffic.payload},
          {"probabilities_bytes", traffic.probabilities},
          {"metadata_bytes", traffic.metadata}};
}

Json json_of(const grid::Fabric& fabric) {
  return {{"ranks_per_node", fabric.ranks_per_node},
          {"intra_node_gb_per_second", fabric.intra.bytes_per_second / 1e9},
          {"inter_node_gb_per_second", fabric.inter.bytes_per_second / 1e9},
          {"intra_node_latency_us", fabric.intra.latency_seconds * 1e6},
          {"inter_node_latency_us", fabric.inter.latency_seconds * 1e6}};
}

Json json_of(const DispatcherRun& run) {
  Json json{{"name", run.name},
            {"rows_local", run.counted.inside.rows},
            {"rows_inter", run.counted.between.rows},
            {"bytes_local", run.counted.inside.bytes()},
            {"bytes_inter", run.counted.between.bytes()},
            {"predicted_rows_local", run.predicted.inside.rows},
            {"predicted_rows_inter", run.predicted.between.rows},
            {"predicted_bytes_local", run.predicted.inside.bytes()},
            {"predicted_bytes_inter", run.predicted.between.bytes()},
            {"local", json_of(run.counted.inside)},
            {"inter", json_of(run.counted.between)},
            {"ms", run.fabric_seconds * 1e3},
            {"free_ms", run.free_seconds * 1e3},
            {"copies_ms", run.local_seconds * 1e3},
            {"peak_bytes", run.peak_bytes},
            {"share_of_link", run.share_of_link}};
  json["one_node_ms"] = run.one_machine_seconds ? Json(*run.one_machine_seconds * 1e3) : Json();
  return json;
}

// "counted (predicted)"
std::string both(double counted, double predicted) {
  return text("{:9.1f} ({:9.1f})", counted, predicted);
}

std::string traffic_table(const DispatchReport& report) {
  std::string table = text("{:10}{:>22}{:>22}{:>22}{:>22}\n{:10}{:>22}{:>22}{:>22}{:>22}\n",
                           "sent",
                           "rows inside",
                           "rows between",
                           "MiB inside",
                           "MiB between",
                           "",
                           "counted (predicted)",
                           "counted (predicted)",
                           "counted (predicted)",
                           "counted (predicted)");
  for (const DispatcherRun& run : report.bench.runs) {
    const auto& [inside, between] = run.counted;
    table += text("{:10}{:>22}{:>22}{:>22}{:>22}\n",
                  run.name,
                  both(inside.rows, run.predicted.inside.rows),
                  both(between.rows, run.predicted.between.rows),
                  both(inside.bytes() / kMebi, run.predicted.inside.bytes() / kMebi),
                  both(between.bytes() / kMebi, run.predicted.between.bytes() / kMebi));
  }
  table += "of these bytes, inside and between machines together:\n";
  for (const DispatcherRun& run : report.bench.runs) {
    const auto& [inside, between] = run.counted;
    table += text("{:10}payload {:.2f} MiB, probabilities {:.1f} KiB, metadata {:.1f} KiB\n",
                  run.name,
                  (inside.payload + between.payload) / kMebi,
                  (inside.probabilities + between.probabilities) / 1024,
                  (inside.metadata + between.metadata) / 1024);
  }
  return table;
}

constexpr const char* kTimeLegend =
    "over links: dispatch and combine over the emulated links; x alltoall: that time over "
    "alltoall's; of link: the rate\nreached on the slowest link, as a share of it; without links: "
    "the copies between ranks alone; one machine: with all\nranks in one machine; local work: "
    "permute, "
    "arrange, restore and un-permute; memory: the peak of a rank.\n";

std::string time_table(const DispatchReport& report) {
  const DispatcherRun& first = run_of(report, "alltoall");
  std::string table = text("{:10}{:>12}{:>12}{:>10}{:>14}{:>12}{:>12}{:>12}\n",
                           "ms",
                           "over links",
                           "x alltoall",
                           "of link",
                           "without links",
                           "one machine",
                           "local work",
                           "memory");
  for (const DispatcherRun& run : report.bench.runs) {
    table += text("{:10}{:>12.2f}{:>12.2f}{:>9.0f}%{:>14.2f}{:>12}{:>12.2f}{:>12}\n",
                  run.name,
                  run.fabric_seconds * 1e3,
                  run.fabric_seconds / first.fabric_seconds,
                  run.share_of_link * 100,
                  run.free_seconds * 1e3,
                  run.one_machine_seconds ? text("{:.2f}", *run.one_machine_seconds * 1e3) : "-",
                  run.local_seconds * 1e3,
                  base::human_bytes(static_cast<double>(run.peak_bytes)));
  }
  return table + kTimeLegend;
}

std::string copies_table(const DispatchReport& report) {
  std::string table = text("{:12}{:>8}{:>9}{:>11}{:>13}{:>8}{:>22}\n",
                           "copies",
                           "hidden",
                           "threads",
                           "rows GB/s",
                           "memcpy GB/s",
                           "share",
                           "read + written GB/s");
  for (const measure::RowCopy& copy : report.copies) {
    table += text("{:12}{:>8}{:>9}{:>11.2f}{:>13.2f}{:>7.0f}%{:>12.2f} of {:.2f}\n",
                  copy.name,
                  copy.hidden,
                  copy.threads,
                  copy.row_bytes_per_second / 1e9,
                  copy.memcpy_bytes_per_second / 2e9,
                  copy.share() * 100,
                  copy.bytes_per_second / 1e9,
                  copy.memcpy_bytes_per_second / 1e9);
    if (copy.read_bytes_per_second > 0) {
      table += text("{:12}{:>8}{:>9}{:>32.0f}%{:>12.2f} of {:.2f}\n",
                    "  only read",
                    copy.hidden,
                    copy.threads,
                    copy.share_of_reading() * 100,
                    copy.read_bytes_per_second / 1e9,
                    copy.memcpy_bytes_per_second / 1e9);
    }
  }
  return table;
}

}  // namespace

std::vector<Bar> bars_of(const DispatchReport& report) {
  std::vector<Bar> bars;
  if (has_bar_shape(report)) {
    const DispatcherRun& alltoall = run_of(report, "alltoall");
    bars.push_back({.name = "hybridep over alltoall, two machines",
                    .value = run_of(report, "hybridep").fabric_seconds / alltoall.fabric_seconds,
                    .limit = 0.5});
    bars.push_back(
        {.name = "deepep over alltoall, one machine",
         .value = *run_of(report, "deepep").one_machine_seconds / *alltoall.one_machine_seconds,
         .limit = 1});
  }
  for (const measure::RowCopy& copy : report.copies) {
    bars.push_back(
        {.name =
             text("{} over memcpy, hidden {}, threads {}", copy.name, copy.hidden, copy.threads),
         .value = copy.share(),
         .limit = 0.6,
         .kind = Bar::Kind::AtLeast});
  }
  return bars;
}

std::string to_text(const DispatchReport& report) {
  const config::ModelConfig& model = report.config.model;
  std::string all = text(
      "{}, {} a machine; {}, top-{}, {} of {} {} values a rank; uniform routing\n"
      "one forward trip of one rank, mean of the ranks; bytes are of dispatch and combine\n\n",
      base::counted(model.expert_model_parallel_size, "rank"),
      report.config.runtime.ranks_per_node.value(),
      base::counted(model.experts(), "expert"),
      model.moe_router_topk,
      base::counted(report.tokens, "token"),
      model.hidden_size,
      name_of(model.params_dtype));
  all += traffic_table(report) + "\n";
  all += text("dispatch + combine over: {}\n", describe(report.bench.fabric));
  if (report.bench.one_machine.ranks_per_node != report.bench.fabric.ranks_per_node) {
    all += text("one machine: {}\n", describe(report.bench.one_machine));
  }
  all += time_table(report);
  if (!report.copies.empty()) {
    all += "\n" + copies_table(report);
    all += "only read: un-permute's rows in its order, with nothing written\n";
  }
  const std::vector<Bar> bars = bars_of(report);
  if (!bars.empty()) all += "\n";
  for (const Bar& bar : bars) all += to_text(bar) + "\n";
  return all;
}

Json to_json(const DispatchReport& report) {
  const config::ModelConfig& model = report.config.model;
  Json json{{"experts", model.experts()},
            {"topk", model.moe_router_topk},
            {"ep", model.expert_model_parallel_size},
            {"ranks_per_node", report.config.runtime.ranks_per_node.value()},
            {"hidden", model.hidden_size},
            {"tokens", report.tokens},
            {"dtype", name_of(model.params_dtype)},
            {"fabric", json_of(report.bench.fabric)},
            {"one_node_fabric", json_of(report.bench.one_machine)},
            {"dispatchers", Json::array()},
            {"copies", Json::array()},
            {"bars", Json::array()}};
  for (const DispatcherRun& run : report.bench.runs) json["dispatchers"].push_back(json_of(run));
  for (const measure::RowCopy& copy : report.copies) {
    json["copies"].push_back(
        {{"name", copy.name},
         {"hidden", copy.hidden},
         {"threads", copy.threads},
         {"rows_gb_per_second", copy.row_bytes_per_second / 1e9},
         {"memcpy_rows_gb_per_second", copy.memcpy_bytes_per_second / 2e9},
         {"read_and_written_gb_per_second", copy.bytes_per_second / 1e9},
         {"memcpy_read_and_written_gb_per_second", copy.memcpy_bytes_per_second / 1e9},
         {"share", copy.share()}});
    if (copy.read_bytes_per_second > 0)
      json["copies"].back()["share_of_reading"] = copy.share_of_reading();
  }
  for (const Bar& bar : bars_of(report)) json["bars"].push_back(to_json(bar));
  return json;
}

}  // namespace weft::cli
