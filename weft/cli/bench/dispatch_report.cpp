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

// "counted (predicted)"
Json both(double counted, double predicted) { return text("{:.1f} ({:.1f})", counted, predicted); }

void add_runs(const DispatchReport& report, report::Document& document) {
  report::Table table({{"name", ""},
                       {"rows_local", ""},
                       {"rows_inter", ""},
                       {"bytes_local", ""},
                       {"bytes_inter", ""},
                       {"predicted_rows_local", ""},
                       {"predicted_rows_inter", ""},
                       {"predicted_bytes_local", ""},
                       {"predicted_bytes_inter", ""},
                       {"local", ""},
                       {"inter", ""},
                       {"ms", ""},
                       {"free_ms", ""},
                       {"copies_ms", ""},
                       {"peak_bytes", ""},
                       {"share_of_link", ""},
                       {"one_node_ms", ""}});
  for (const DispatcherRun& run : report.bench.runs) {
    const auto& [inside, between] = run.counted;
    table.row({run.name,
               inside.rows,
               between.rows,
               inside.bytes(),
               between.bytes(),
               run.predicted.inside.rows,
               run.predicted.between.rows,
               run.predicted.inside.bytes(),
               run.predicted.between.bytes(),
               json_of(inside),
               json_of(between),
               run.fabric_seconds * 1e3,
               run.free_seconds * 1e3,
               run.local_seconds * 1e3,
               run.peak_bytes,
               run.share_of_link,
               report::or_null(run.one_machine_seconds, 1e3)});
  }
  document.json("dispatchers", table.to_json());
}

void add_traffic(const DispatchReport& report, report::Document& document) {
  report::Document& part = document.section("", "sent: counted (predicted)");
  report::Table& sent = part.table("",
                                   {{"", "dispatcher"},
                                    {"", "rows inside"},
                                    {"", "rows between"},
                                    {"", "MiB inside"},
                                    {"", "MiB between"}});
  for (const DispatcherRun& run : report.bench.runs) {
    const auto& [inside, between] = run.counted;
    sent.row({run.name,
              both(inside.rows, run.predicted.inside.rows),
              both(between.rows, run.predicted.between.rows),
              both(inside.bytes() / kMebi, run.predicted.inside.bytes() / kMebi),
              both(between.bytes() / kMebi, run.predicted.between.bytes() / kMebi)});
  }
  part.line("of these bytes, inside and between machines together:");
  report::Table& parts = part.table(
      "",
      {{"", "dispatcher"}, {"", "payload MiB"}, {"", "probabilities KiB"}, {"", "metadata KiB"}});
  for (const DispatcherRun& run : report.bench.runs) {
    const auto& [inside, between] = run.counted;
    parts.row({run.name,
               (inside.payload + between.payload) / kMebi,
               (inside.probabilities + between.probabilities) / 1024,
               (inside.metadata + between.metadata) / 1024});
  }
}

constexpr const char* kTimeLegend =
    "over links: dispatch and combine over the emulated links; x alltoall: that time over "
    "alltoall's; of link: the rate\nreached on the slowest link, as a share of it; without links: "
    "the copies between ranks alone; one machine: with all\nranks in one machine; local work: "
    "permute, "
    "arrange, restore and un-permute; memory: the peak of a rank.";

void add_times(const DispatchReport& report, report::Document& document) {
  const double alltoall = run_of(report, "alltoall").fabric_seconds;
  report::Document& part =
      document.section("", text("dispatch + combine over: {}", describe(report.bench.fabric)));
  if (report.bench.one_machine.ranks_per_node != report.bench.fabric.ranks_per_node) {
    part.line(text("one machine: {}", describe(report.bench.one_machine)));
  }
  report::Table& times = part.table("",
                                    {{"", "ms"},
                                     {"", "over links"},
                                     {"", "x alltoall"},
                                     {"", "of link", report::percent(0)},
                                     {"", "without links"},
                                     {"", "one machine"},
                                     {"", "local work"},
                                     {"", "memory", {.form = report::Shown::Form::Bytes}}});
  for (const DispatcherRun& run : report.bench.runs) {
    times.row({run.name,
               run.fabric_seconds * 1e3,
               run.fabric_seconds / alltoall,
               run.share_of_link,
               run.free_seconds * 1e3,
               report::or_null(run.one_machine_seconds, 1e3),
               run.local_seconds * 1e3,
               run.peak_bytes});
  }
  part.line(kTimeLegend);
}

void add_copies(const DispatchReport& report, report::Document& document) {
  if (report.copies.empty()) {
    document.json("copies", Json::array());
    return;
  }
  report::Document& part = document.section("", "copies");
  report::Table& copies = part.table("copies",
                                     {{"name", "copy"},
                                      {"hidden", "hidden"},
                                      {"threads", "threads"},
                                      {"rows_gb_per_second", "rows GB/s"},
                                      {"memcpy_rows_gb_per_second", "memcpy GB/s"},
                                      {"read_and_written_gb_per_second", "read + written GB/s"},
                                      {"memcpy_read_and_written_gb_per_second", "of memcpy's"},
                                      {"share", "share", report::percent(0)},
                                      {"share_of_reading", "only read", report::percent(0)}});
  for (const measure::RowCopy& copy : report.copies) {
    copies.row({copy.name,
                copy.hidden,
                copy.threads,
                copy.row_bytes_per_second / 1e9,
                copy.memcpy_bytes_per_second / 2e9,
                copy.bytes_per_second / 1e9,
                copy.memcpy_bytes_per_second / 1e9,
                copy.share(),
                copy.read_bytes_per_second > 0 ? Json(copy.share_of_reading()) : report::absent()});
  }
  part.line("only read: un-permute's rows in its order, with nothing written, over memcpy");
}

std::vector<report::Bar> bars_of(const DispatchReport& report) {
  std::vector<report::Bar> bars;
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
         .kind = report::Bar::Kind::AtLeast});
  }
  return bars;
}

}  // namespace

report::Document document_of(const DispatchReport& report) {
  const config::ModelConfig& model = report.config.model;
  const std::int64_t ranks_per_node = report.config.runtime.ranks_per_node.value();
  report::Document document;
  document.line(
      text("{}, {} a machine; {}, top-{}, {} of {} {} values a rank; uniform routing\n"
           "one forward trip of one rank, mean of the ranks; bytes are of dispatch and combine",
           base::counted(model.expert_model_parallel_size, "rank"),
           ranks_per_node,
           base::counted(model.experts(), "expert"),
           model.moe_router_topk,
           base::counted(report.tokens, "token"),
           model.hidden_size,
           name_of(model.params_dtype)));
  document.json("experts", model.experts());
  document.json("topk", model.moe_router_topk);
  document.json("ep", model.expert_model_parallel_size);
  document.json("ranks_per_node", ranks_per_node);
  document.json("hidden", model.hidden_size);
  document.json("tokens", report.tokens);
  document.json("dtype", name_of(model.params_dtype));
  document.json("fabric", json_of(report.bench.fabric));
  document.json("one_node_fabric", json_of(report.bench.one_machine));
  add_runs(report, document);
  add_traffic(report, document);
  add_times(report, document);
  add_copies(report, document);
  document.bars(bars_of(report));
  return document;
}

}  // namespace weft::cli
