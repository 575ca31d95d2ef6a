// weft bench plan: CPU time of a layout search for a large model on many GPUs.
#include "weft/cli/bench/benches.h"
#include "weft/cli/plan/plan_searched.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/measure/runs/rounds.h"
#include "weft/plan/search/layout_space.h"

namespace weft::cli {
namespace {

// Limit for all threads together, without pinned keys.
constexpr double kMostCpuSeconds = 16;
constexpr std::size_t kTop = 10;  // default of `weft plan`

struct PlanBenchOptions {
  Format format = Format::Text;
  std::vector<std::string> keys;
};

PlanOptions plan_options(const PlanBenchOptions& options) {
  PlanOptions plan;
  plan.run.words = {"deepseek_v3"};
  plan.run.words.insert(plan.run.words.end(), options.keys.begin(), options.keys.end());
  plan.search.gpus = 1024;
  plan.search.batch = 8192;
  plan.gpu = "h100";
  return plan;
}

report::Document search_document(const PlanBenchOptions& options) {
  const double start = measure::cpu_seconds();
  plan::SearchResult search;
  try {
    const Question question = question_of(plan_options(options));
    const plan::LayoutSpace space(question.ask);
    search = search_for(question, space, kTop, all_hardware(), catch_interrupts()).search;
  } catch (const plan::SearchStopped&) {
    throw measure::Stopped{};
  }
  const double taken = measure::cpu_seconds() - start;
  report::Document document;
  document.value("shapes", "shapes", search.shapes);
  document.value("priced", "layouts priced by formula", search.priced);
  document.value("simulated", "simulated", search.simulated);
  document.value("ranked", "ranked", search.ranked.size());
  document.value("cpu_seconds", "CPU time", taken, {2, "s"});
  document.bars({{.name = "CPU seconds of a search for deepseek_v3 on 1024 H100",
                  .value = taken,
                  .limit = kMostCpuSeconds}});
  return document;
}

int run_plan_bench(const PlanBenchOptions& options) {
  return run_bench(options.format, [&](ProgressLine&) { return search_document(options); });
}

}  // namespace

void add_bench_plan(CLI::App& bench, Action& chosen) {
  CLI::App* command =
      bench.add_subcommand("plan", "CPU time of a search: layouts of deepseek_v3 on 1024 GPUs");
  auto options = std::make_shared<PlanBenchOptions>();
  add_format(*command, options->format);
  command->add_option("keys", options->keys, "keys fixed in every layout, such as pp=16 ep=64")
      ->type_name("KEY=VALUE");
  command->footer("Example: weft bench plan --json");
  on_chosen(*command, chosen, std::move(options), run_plan_bench);
}

}  // namespace weft::cli
