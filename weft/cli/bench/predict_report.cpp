#include "weft/cli/bench/predict_report.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"

namespace weft::cli {
namespace {

using base::text;
using measure::PredictBench;
using measure::Prediction;

constexpr double kMostErrorOfLayouts = 0.10, kMostErrorOfModels = 0.06;
constexpr double kAlikeSteps = 0.03;

base::Json kinds_json(const Prediction& prediction) {
  base::Json kinds = base::Json::array();
  for (const measure::NodeKindTimes& times : prediction.kinds) {
    kinds.push_back({{"kind", times.kind},
                     {"nodes", times.nodes},
                     {"predicted_ms", times.predicted_seconds * 1e3},
                     {"measured_ms", times.measured_seconds * 1e3}});
  }
  return kinds;
}

base::Json row_json(const Prediction& each) {
  return {{"name", each.name},
          {"group", each.group},
          {"predicted_ms", each.predicted_seconds * 1e3},
          {"measured_ms", each.measured_seconds * 1e3},
          {"error", each.error()},
          {"step_ms", each.step_ms},
          {"nodes", kinds_json(each)}};
}

}  // namespace

std::vector<Bar> bars_of(const PredictBench& bench, PredictSet set) {
  double loss = 0;
  for (const measure::TopOfGroup& top : bench.tops()) loss = std::max(loss, top.loss);
  return {{.name = "the worst error of a predicted step",
           .value = bench.worst_error(),
           .limit = set == PredictSet::Layouts ? kMostErrorOfLayouts : kMostErrorOfModels},
          {.name = "what the run predicted to be fastest takes longer than the fastest",
           .value = loss,
           .limit = kAlikeSteps}};
}

std::string to_text(const PredictBench& bench, PredictSet set) {
  std::string all = plan::describe(bench.calibrated.calibration.rates);
  all += text("calibrated by one run: step {:.2f} ms", bench.calibrated.step_seconds * 1e3);
  if (bench.calibrated.overlapped_seconds) {
    all += text(", overlapped {:.2f} ms", *bench.calibrated.overlapped_seconds * 1e3);
  }
  all += text("\n\n{:<52} {:>12} {:>12} {:>8}\n", "run", "predicted ms", "measured ms", "error");
  for (const Prediction& each : bench.predictions) {
    all += text("{:<52} {:>12.2f} {:>12.2f} {:>+7.1f}%\n",
                each.name,
                each.predicted_seconds * 1e3,
                each.measured_seconds * 1e3,
                each.error() * 100);
  }
  all += text("\nerror: median {:.1f} %, worst {:.1f} %\n",
              bench.median_error() * 100,
              bench.worst_error() * 100);
  for (const measure::TopOfGroup& top : bench.tops()) {
    all += top.predicted == top.measured
               ? text("fastest of {}: {}, as predicted\n", top.group, top.measured)
               : text("fastest of {}: {}; predicted {}, which takes {:.1f} % longer\n",
                      top.group,
                      top.measured,
                      top.predicted,
                      top.loss * 100);
  }
  for (const Bar& each : bars_of(bench, set)) all += to_text(each) + "\n";
  return all;
}

base::Json to_json(const PredictBench& bench, PredictSet set) {
  base::Json rows = base::Json::array(), tops = base::Json::array(), bars = base::Json::array();
  for (const Prediction& each : bench.predictions) rows.push_back(row_json(each));
  for (const measure::TopOfGroup& top : bench.tops()) {
    tops.push_back({{"group", top.group},
                    {"predicted", top.predicted},
                    {"measured", top.measured},
                    {"loss", top.loss}});
  }
  for (const Bar& each : bars_of(bench, set)) bars.push_back(to_json(each));
  base::Json json{{"set", word(set)},
                  {"interrupted", bench.interrupted},
                  {"calibration", base::parse_json(plan::print(bench.calibrated.calibration))},
                  {"calibrated_ms", bench.calibrated.step_seconds * 1e3},
                  {"rows", std::move(rows)},
                  {"median_error", bench.median_error()},
                  {"worst_error", bench.worst_error()},
                  {"tops", std::move(tops)},
                  {"bars", std::move(bars)}};
  if (bench.calibrated.overlapped_seconds) {
    json["calibrated_overlapped_ms"] = *bench.calibrated.overlapped_seconds * 1e3;
  }
  return json;
}

}  // namespace weft::cli
