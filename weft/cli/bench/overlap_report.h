// Report of `weft bench overlap`, as text, JSON and a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/measure/bench/overlap_bench.h"
#include "weft/plan/order/zero_bubble.h"
#include "weft/report/document/document.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/trace/exposure/partnered.h"

namespace weft::cli {

struct OverlapRow {
  std::string name;
  double step_seconds = 0;
  std::vector<double> round_seconds;  // timed steps
  double speedup = 0;                 // over the plain order on the same fabric
  trace::CommunicationTime time;      // benched kind; for experts all kinds
  trace::Partnered partnered;
  std::int64_t peak_activation_bytes = 0;
  // nullopt: an order with nodes that the plain one lacks.
  std::optional<double> predicted_seconds, ideal_seconds;
  // Step without the time of embedding, head and optimizer alone.
  double layers_seconds = 0;
  // Additional time of the best round over the plain order's on free links, as a share of the
  // latter. steady_added: outside of warm-up and cool-down, for a pipeline with several chunks per
  // rank. nullopt: real links.
  std::optional<double> added, steady_added;
  bool is_fitted = false;  // plain order, the source of the prediction

  std::optional<double> prediction_error() const {
    if (!predicted_seconds) return std::nullopt;
    return *predicted_seconds / step_seconds - 1;
  }
};

struct FabricReport {
  measure::BenchedKind kind = measure::BenchedKind::Ep;
  std::string name;
  std::string links;  // emulated links
  bool is_free = false;
  bool is_one_rank = false;  // one rank of a pretended world
  double compute_seconds = 0, communication_seconds = 0;
  // Layers alone: without embedding, head, optimizer, and the optimizer's reductions and gathers.
  std::optional<double> layers_compute_seconds;
  double layers_communication_seconds = 0;
  bool compute_is_simulated = false;  // a network cannot be removed: simulated from the trace
  std::vector<OverlapRow> rows;
  std::optional<plan::Bubbles> bubbles;  // set if one of the orders is zb_h1

  double longer_alone_seconds() const { return std::max(compute_seconds, communication_seconds); }
  // Prediction of the most overlapped order with one.
  std::optional<double> ideal_seconds() const {
    std::optional<double> last;
    for (const OverlapRow& row : rows) last = row.ideal_seconds ? row.ideal_seconds : last;
    return last;
  }
  // Communication alone over compute alone, both within layers.
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

// Bars. Expert communication has bars for one rank of a pretended world, chosen by the ratio. Other
// kinds have a bar for the time added to the step, for plain orders that add about 30 %. They have
// another bar on free links.
std::vector<report::Bar> bars_of(const FabricReport& report);
// True if the links are as slow as requested; otherwise no bar applies to the last order.
bool is_judged(const FabricReport& report);

report::Document document_of(const std::vector<FabricReport>& reports);
// Picture of the last fabric's orders one above the other: the first micro-batches of a step.
std::string to_svg(const measure::OverlapBench& bench);

}  // namespace weft::cli
