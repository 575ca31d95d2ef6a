// weft bench plan: CPU time of a layout search for a large model on many GPUs.
#include <ctime>

#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/plan/plan_searched.h"
#include "weft/cli/terminal/bar.h"
#include "weft/cli/terminal/interrupt.h"
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

double cpu_seconds_of_search() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

PlanOptions plan_options(const PlanBenchOptions& options) {
  PlanOptions plan;
  plan.run.words = {"deepseek_v3"};
  plan.run.words.insert(plan.run.words.end(), options.keys.begin(), options.keys.end());
  plan.search.gpus = 1024;
  plan.search.batch = 8192;
  plan.gpu = "h100";
  return plan;
}

int run_plan_bench(const PlanBenchOptions& options) {
  const std::atomic<bool>& stop = catch_interrupts();
  plan::KeptSearch kept;
  const double start = cpu_seconds_of_search();
  try {
    const Question question = question_of(plan_options(options));
    const plan::LayoutSpace space(question.ask);
    kept = search_for(question, space, kTop, all_hardware(), stop);
  } catch (const plan::SearchStopped&) {
    return stopped_bench(options.format);
  }
  const Bar bar{.name = "CPU seconds of a search for deepseek_v3 on 1024 H100",
                .value = cpu_seconds_of_search() - start,
                .limit = kMostCpuSeconds};
  const plan::SearchResult& search = kept.search;
  if (options.format == Format::Json) {
    print_json({{"shapes", search.shapes},
                {"priced", search.priced},
                {"simulated", search.simulated},
                {"ranked", search.ranked.size()},
                {"cpu_seconds", bar.value},
                {"bars", base::Json::array({to_json(bar)})}});
  } else {
    print_text(base::text("{} shapes, {} layouts priced by formula, {} simulated\n{}\n",
                          search.shapes,
                          search.priced,
                          search.simulated,
                          to_text(bar)));
  }
  return bar.met() ? kGood : kFailed;
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
