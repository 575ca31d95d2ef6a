#include "weft/cli/bench/predict_report.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/plan/hardware/calibration_text.h"

namespace weft::cli {
namespace {

using measure::PredictBench;
using measure::Prediction;

constexpr double kMostErrorOfLayouts = 0.10, kMostErrorOfModels = 0.06;
constexpr double kAlikeSteps = 0.03;

base::Json kinds_json(const Prediction& prediction) {
  report::Table kinds({{"kind", ""}, {"nodes", ""}, {"predicted_ms", ""}, {"measured_ms", ""}});
  for (const measure::NodeKindTimes& times : prediction.kinds) {
    kinds.row(
        {times.kind, times.nodes, times.predicted_seconds * 1e3, times.measured_seconds * 1e3});
  }
  return kinds.to_json();
}

std::vector<report::Bar> bars_of(const PredictBench& bench, PredictSet set) {
  double loss = 0;
  for (const measure::TopOfGroup& top : bench.tops()) loss = std::max(loss, top.loss);
  return {{.name = "the worst error of a predicted step",
           .value = bench.worst_error(),
           .limit = set == PredictSet::Layouts ? kMostErrorOfLayouts : kMostErrorOfModels},
          {.name = "what the run predicted to be fastest takes longer than the fastest",
           .value = loss,
           .limit = kAlikeSteps}};
}

}  // namespace

report::Document document_of(const PredictBench& bench, PredictSet set) {
  const measure::CalibrationResult& calibrated = bench.calibrated;
  report::Document document;
  document.json("set", word(set));
  document.json("interrupted", bench.interrupted);
  document.line(std::string(base::trim(plan::describe(calibrated.calibration.rates))));
  document.json("calibration", base::parse_json(plan::print(calibrated.calibration)));
  document.value("calibrated_ms", "calibrated by", calibrated.step_seconds * 1e3, {2, "ms"});
  if (calibrated.overlapped_seconds) {
    document.value("calibrated_overlapped_ms",
                   "overlapped",
                   *calibrated.overlapped_seconds * 1e3,
                   {2, "ms"});
  }
  document.line("");
  report::Table& rows =
      document.table("rows",
                     {{"name", "run"},
                      {"group", ""},
                      {"predicted_ms", "predicted ms"},
                      {"measured_ms", "measured ms"},
                      {"error", "error", report::percent(1, report::Shown::Form::Signed)},
                      {"step_ms", ""},
                      {"nodes", ""}});
  for (const Prediction& each : bench.predictions) {
    rows.row({each.name,
              each.group,
              each.predicted_seconds * 1e3,
              each.measured_seconds * 1e3,
              each.error(),
              each.step_ms,
              kinds_json(each)});
  }
  document.line("");
  document.value("median_error", "median error", bench.median_error(), report::percent());
  document.value("worst_error", "worst error", bench.worst_error(), report::percent());
  document.line("");
  report::Table& tops = document.table("tops",
                                       {{"group", "fastest of"},
                                        {"predicted", "predicted"},
                                        {"measured", "measured"},
                                        {"loss", "takes longer", report::percent()}});
  for (const measure::TopOfGroup& top : bench.tops()) {
    tops.row({top.group, top.predicted, top.measured, top.loss});
  }
  document.bars(bars_of(bench, set));
  return document;
}

}  // namespace weft::cli
