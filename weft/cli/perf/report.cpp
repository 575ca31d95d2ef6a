// weft report: time and memory of a run by cause, and suggestions.
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/files/overwrite.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/terminal/progress.h"
#include "weft/plan/hardware/calibration.h"
#include "weft/plan/hardware/calibration_text.h"
#include "weft/report/analyse.h"
#include "weft/report/evidence.h"
#include "weft/report/render.h"

namespace weft::cli {
namespace {

struct ReportOptions {
  std::string path, html, calibration;
  Format format = Format::Text;
  base::Overwrite overwrite = base::Overwrite::No;
};

plan::Calibration calibration_in(const std::string& file) {
  try {
    return plan::parse_calibration(base::read_text(file));
  } catch (const base::ConfigError& error) {
    throw base::ConfigError(base::text("{}: {}", file, error.what()));
  }
}

// Size of a file below which no progress bar is shown.
constexpr std::uint64_t kShown = 8u << 20;

int run_report(const ReportOptions& options) {
  if (!options.html.empty()) {
    base::require_result(options.html, options.overwrite, "<title>weft report");
  }
  ProgressLine line;
  const auto show = [&](const std::string& file, std::uint64_t read, std::uint64_t all) {
    if (all < kShown) return;
    const double share = static_cast<double>(read) / static_cast<double>(all);
    line.show(
        base::text("reading {} {} {:3.0f} %", base::shown(file), bar(share, 24), 100 * share));
  };
  report::Evidence evidence = report::read_evidence(options.path, show);
  line.show("telling where the time went");
  if (!options.calibration.empty()) evidence.calibration = calibration_in(options.calibration);
  const report::Report report = report::analyse(evidence);
  line.clear();
  if (!options.html.empty()) base::write_whole(options.html, report::to_page(report, evidence));
  switch (options.format) {
    case Format::Text:
      print_text(report::to_text(report));
      break;
    case Format::Json:
      print_json(report::to_json(report));
      break;
  }
  return kGood;
}

}  // namespace

void add_report(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "report",
      "say where the time and the memory of a run or a trace went, and what to try next");
  auto options = std::make_shared<ReportOptions>();
  command
      ->add_option(
          "path",
          options->path,
          "a run folder of weft train, or a Chrome trace (packed by gzip or not): of Weft, or of "
          "PyTorch's profiler")
      ->type_name("RUN|TRACE")
      ->required();
  add_overwrite(*command, options->overwrite);
  command->add_option("--html", options->html, "file for the same as one page with a timeline")
      ->type_name("FILE");
  command
      ->add_option("--calibration",
                   options->calibration,
                   "predict by what weft calibrate measured of the machine; default: nominal costs")
      ->type_name("FILE");
  add_format(*command, options->format);
  command->footer(
      "Example: weft train tiny world=2 ep=2 runtime.trace=true runtime.run_dir=runs/a\n"
      "         weft report runs/a --html=report.html\n"
      "The page needs no network: any browser opens it.");
  on_chosen(*command, chosen, std::move(options), run_report);
}

}  // namespace weft::cli
