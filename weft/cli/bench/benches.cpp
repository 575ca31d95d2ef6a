#include "weft/cli/bench/benches.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/derive/derived.h"
#include "weft/measure/runs/rounds.h"
#include "weft/rules/validate.h"

namespace weft::cli {

words::Resolution resolve_bench(const RunArguments& arguments, std::string_view times) {
  if (under_launcher()) throw base::ConfigError(base::text("{}: run it without mpirun", times));
  words::Resolution run = resolve(arguments);
  refuse_foreign_launcher(run);
  print_findings(run);
  return run;
}

rules::JudgedConfig require_one_rank(const config::Config& config, std::string_view times) {
  const rules::JudgedConfig judged = rules::validate(config).judged.value();
  if (derive::layout_of(judged).world == 1) return judged;
  throw base::ConfigError(base::text("{}: set world=1 and every parallel size to 1", times));
}

std::function<void(int done, int of)> progress_on(ProgressLine& line, std::string what) {
  return [&line, what = std::move(what)](int done, int of) {
    line.show(base::text("{} {} {}/{}", bar(double(done) / of, 24), what, done, of));
  };
}

std::function<void(const std::string& what)> notes_on(ProgressLine& line) {
  return [&line](const std::string& what) { line.show(what); };
}

int run_bench(Format format, const std::function<report::Document(ProgressLine& line)>& bench) {
  ProgressLine line;
  report::Document document;
  try {
    document = bench(line);
  } catch (const measure::Stopped&) {
    line.clear();
    return stopped_bench(format);
  }
  line.clear();
  return end_bench(format, document);
}

int end_bench(Format format, const report::Document& document) {
  switch (format) {
    case Format::Text:
      print_text(document.to_text());
      break;
    case Format::Json:
      print_json(document.to_json());
      break;
  }
  return document.met() ? kGood : kFailed;
}

int stopped_bench(Format format) {
  print_failure({"stopped before the end: nothing to report"}, format);
  return interrupted_code();
}

}  // namespace weft::cli
