// What `weft bench overlap` found, in text, JSON and as a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/terminal/bar.h"
#include "weft/measure/bench/overlap_bench.h"
#include "weft/plan/order/zero_bubble.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/trace/exposure/partnered.h"

namespace weft::cli {

struct OverlapRow {
  std::string name;
  double step_seconds = 0;
  std::vector<double> round_seconds;  // of each timed step
  double speedup = 0;                 // over plain on the same fabric
  trace::CommunicationTime time;      // of the benched kind; of all kinds where experts' is
  trace::Partnered partnered;
  std::int64_t peak_activation_bytes = 0;
  // None of an order with nodes that the plain one does not have.
  std::optional<double> predicted_seconds, ideal_seconds;
  // Of the step, without what embedding, head and optimizer took with nothing of a layer beside it.
  double layers_seconds = 0;
  // What the best round took longer than that of the plain order on free links, as a share of the
  // latter; and that outside warm-up and cool-down, of a pipeline with several chunks a rank. None
  // where links are as they are.
  std::optional<double> added, steady_added;
  bool is_fitted = false;  // the plain order, from which the prediction starts

  std::optional<double> prediction_error() const {
    if (!predicted_seconds) return std::nullopt;
    return *predicted_seconds / step_seconds - 1;
  }
};

struct FabricReport {
  measure::BenchedKind kind = measure::BenchedKind::Ep;
  std::string name;
  std::string links;  // what was emulated
  bool is_free = false;
  bool is_one_rank = false;  // of a pretended world
  double compute_seconds = 0, communication_seconds = 0;
  // Of the layers alone: without embedding, head and optimizer, and what they reduce and gather.
  std::optional<double> layers_compute_seconds;
  double layers_communication_seconds = 0;
  bool compute_is_simulated = false;  // a network cannot be taken away: simulated from the trace
  std::vector<OverlapRow> rows;
  std::optional<plan::Bubbles> bubbles;  // where one of the orders is zb_h1

  double longer_alone_seconds() const { return std::max(compute_seconds, communication_seconds); }
  // Of the order that hides most, of those that are predicted.
  std::optional<double> ideal_seconds() const {
    std::optional<double> last;
    for (const OverlapRow& row : rows) last = row.ideal_seconds ? row.ideal_seconds : last;
    return last;
  }
  // Communication alone over compute alone, both of the layers.
  std::optional<double> ratio() const {
    if (kind != measure::BenchedKind::Ep || !layers_compute_seconds) return std::nullopt;
    return layers_communication_seconds / *layers_compute_seconds;
  }
  double layers_speedup(const OverlapRow& row) const {
    return rows.front().layers_seconds / row.layers_seconds;
  }
};

std::vector<FabricReport> report_of(const std::vector<measure::OverlapOrder>& orders,
                                    measure::BenchedKind kind,
                                    const measure::OverlapBench& bench);

// Of experts' communication those that are set for one rank of a pretended world: which they are,
// the ratio decides. Of another kind what it may add to the step where it adds about 30 % to the
// plain one, and on free links.
std::vector<Bar> bars_of(const FabricReport& report);
// Whether links are as slow as was asked for: if not, there is no bar to hold the last order
// against.
bool is_judged(const FabricReport& report);

base::Json to_json(const std::vector<FabricReport>& reports);
std::string to_text(const std::vector<FabricReport>& reports);
// The last fabric's orders one above the other: the first micro-batches of a step.
std::string to_svg(const measure::OverlapBench& bench);

}  // namespace weft::cli
