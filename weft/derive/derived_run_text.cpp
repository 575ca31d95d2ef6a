// Derived run as JSON and as text.
#include <algorithm>

#include "weft/base/text.h"
#include "weft/derive/derived_run.h"

namespace weft::derive {
namespace {

using base::Json;
using base::text;

// "30.5 B": counts in thousands, millions, billions.
std::string human_count(double count) {
  constexpr const char* kUnits[] = {"", " K", " M", " B", " T"};
  std::size_t unit = 0;
  while (count >= 1000 && unit + 1 < std::size(kUnits)) {
    count /= 1000;
    ++unit;
  }
  return unit == 0 ? text("{:.0f}", count) : text("{:.4g}{}", count, kUnits[unit]);
}

std::string human_count(std::int64_t count) { return human_count(static_cast<double>(count)); }

std::string bytes_text(double bytes) { return base::human_bytes(bytes); }

Json stage_json(const Stage& stage) {
  return {{"first_layer", stage.first_layer},
          {"layers", stage.layers},
          {"mtp_layers", stage.mtp_layers},
          {"embedding", stage.embedding},
          {"loss", stage.loss}};
}

Json rank_json(const DerivedRank& rank) {
  Json stages = Json::array();
  for (const Stage& stage : rank.stages) stages.push_back(stage_json(stage));
  return {{"stages", std::move(stages)},
          {"parameters", rank.parameters.total()},
          {"dense_parameters", rank.parameters.dense},
          {"expert_parameters", rank.parameters.experts},
          {"weights_bytes", rank.bytes.weights},
          {"gradients_bytes", rank.bytes.gradients},
          {"optimizer_bytes", rank.bytes.optimizer},
          {"offloaded_bytes", rank.bytes.offloaded},
          {"total_bytes", rank.bytes.total()}};
}

Json dispatch_json(const DispatchNumbers& dispatch) {
  return {{"tokens", dispatch.tokens},
          {"ranks", dispatch.ranks},
          {"nodes", dispatch.machines},
          {"rows", dispatch.rows},
          {"rows_between_nodes", dispatch.rows_between_machines},
          {"bytes", dispatch.bytes},
          {"bytes_between_nodes", dispatch.bytes_between_machines}};
}

// "embedding+11 | 12+head": layers of a rank's chunks.
std::string stages_text(const std::vector<Stage>& stages) {
  std::vector<std::string> all;
  for (const Stage& stage : stages) {
    std::string one = text("{}", stage.layers);
    if (stage.embedding) one = "embedding+" + one;
    if (stage.mtp_layers > 0) one += text("+{} mtp", stage.mtp_layers);
    if (stage.loss) one += "+head";
    all.push_back(std::move(one));
  }
  return text("{}", fmt::join(all, " | "));
}

std::string rank_text(const DerivedRank& rank) {
  return text(
      "layers {}: {} parameters ({} in experts), {} = weights {} + gradients {} + "
      "optimizer {}{}",
      stages_text(rank.stages),
      human_count(rank.parameters.total()),
      human_count(rank.parameters.experts),
      bytes_text(static_cast<double>(rank.bytes.total())),
      bytes_text(static_cast<double>(rank.bytes.weights)),
      bytes_text(static_cast<double>(rank.bytes.gradients)),
      bytes_text(static_cast<double>(rank.bytes.optimizer)),
      rank.bytes.offloaded > 0
          ? text("; in host memory {}", bytes_text(static_cast<double>(rank.bytes.offloaded)))
          : "");
}

// Equal neighbouring pipeline ranks share a line.
std::string ranks_text(const std::vector<DerivedRank>& ranks) {
  std::string all;
  for (std::size_t first = 0; first < ranks.size();) {
    const std::string line = rank_text(ranks[first]);
    std::size_t next = first + 1;
    while (next < ranks.size() && rank_text(ranks[next]) == line) ++next;
    const std::string name =
        next == first + 1 ? text("pp rank {}", first) : text("pp ranks {}-{}", first, next - 1);
    all += text("  {:<16}{}\n", name, line);
    first = next;
  }
  return all;
}

std::string dispatch_text(const DispatchNumbers& dispatch) {
  if (dispatch.ranks == 1) return "  dispatch        none: experts are on one rank\n";
  std::string all = text("  dispatch        {} of a rank, {:.0f} rows ({}) to other ranks",
                         base::counted(dispatch.tokens, "token"),
                         dispatch.rows,
                         bytes_text(dispatch.bytes));
  if (dispatch.machines > 1) {
    all += text(", {:.0f} rows ({}) between {} machines",
                dispatch.rows_between_machines,
                bytes_text(dispatch.bytes_between_machines),
                dispatch.machines);
  }
  return all + "; expected under even routing\n";
}

}  // namespace

Json to_json(const DerivedRun& run) {
  Json ranks = Json::array();
  for (const DerivedRank& rank : run.ranks) ranks.push_back(rank_json(rank));
  return {{"dp", run.dp},
          {"edp", run.edp},
          {"grid",
           {{"world", run.layout.world},
            {"tp", run.layout.tp},
            {"cp", run.layout.cp},
            {"pp", run.layout.pp},
            {"vpp", run.vpp},
            {"dp", run.dp},
            {"ep", run.layout.ep},
            {"etp", run.layout.etp},
            {"edp", run.edp}}},
          {"micro_batches", run.micro_batches},
          {"tokens_per_step", run.tokens_per_step},
          {"parameters",
           {{"total", run.parameters.total},
            {"active", run.parameters.active},
            {"experts", run.parameters.experts},
            {"mtp", run.parameters.mtp}}},
          {"flops_per_token", run.flops_per_token},
          {"pipeline_ranks", std::move(ranks)},
          {"dispatch", dispatch_json(run.dispatch)}};
}

std::string to_text(const DerivedRun& run) {
  const grid::Layout& layout = run.layout;
  std::string all = text("  grid            {} = tp {} * cp {} * pp {} * dp {}",
                         base::counted(layout.world, "rank"),
                         layout.tp,
                         layout.cp,
                         layout.pp,
                         run.dp);
  all += text("; experts etp {} * ep {} * pp {} * edp {}; vpp {}\n",
              layout.etp,
              layout.ep,
              layout.pp,
              run.edp,
              run.vpp);
  all += text("  step            {} of a rank, {}\n",
              base::counted(run.micro_batches, "micro-batch"),
              base::counted(run.tokens_per_step, "token"));
  all += text("  parameters      {} total, {} active, {} in experts",
              human_count(run.parameters.total),
              human_count(run.parameters.active),
              human_count(run.parameters.experts));
  if (run.parameters.mtp > 0) all += text(", {} in MTP", human_count(run.parameters.mtp));
  all += text("\n  FLOPs           {:.6g} G a token\n", run.flops_per_token / 1e9);
  return all + ranks_text(run.ranks) + dispatch_text(run.dispatch);
}

}  // namespace weft::derive
