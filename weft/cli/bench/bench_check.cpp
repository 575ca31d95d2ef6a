// weft bench check: time of judging every recipe, and of checking the schedules of a large layout.
#include <algorithm>
#include <numeric>

#include "weft/cli/bench/benches.h"
#include "weft/cli/judge/check_run.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/measure/runs/rounds.h"
#include "weft/plan/order/check_schedule.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace {

struct CheckBenchOptions {
  Format format = Format::Text;
  std::size_t each = 1;  // runs per recipe
};

// Limit of the program's CPU time for the slowest shipped recipe, including its memory check.
constexpr double kMostSeconds = 0.5;

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const std::filesystem::path& file : words::recipe_files(recipes_folder())) {
    const words::Recipe recipe = words::load_recipe(file, recipes_folder());
    names.push_back(recipe.name);
    for (const words::RecipeLayout& layout : recipe.layouts) {
      names.push_back(recipe.full_name(layout));
    }
  }
  return names;
}

// Layout of 1024 ranks: pp 16, vpp 2, ep 64, 64 layers, 64 micro-batches, overlapped.
double large_seconds() {
  config::Config config;
  config.model.num_layers = 64;
  config.model.num_moe_experts = 64;
  config.model.pipeline_model_parallel_size = 16;
  config.model.virtual_pipeline_model_parallel_size = 2;
  config.model.expert_model_parallel_size = 64;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.runtime.world_size = 1024;
  config.train.global_batch_size = 64 * 64;
  return measure::seconds_of([&] { plan::check_schedule(rules::judge(config).config); });
}

report::Document check_document(std::size_t each, const std::atomic<bool>& stop) {
  const std::vector<std::string> all = all_names();
  std::vector<std::string> names;
  measure::Samples seconds;  // of `weft check` without output
  for (std::size_t i = 0; i < all.size(); i += each) {
    measure::throw_if_stopped(&stop);
    names.push_back(all[i]);
    seconds.add(measure::seconds_of(
        [&] { check_run({.run = {.words = {all[i]}, .format = Format::Text}}); },
        measure::cpu_seconds));
  }
  const auto slowest = std::ranges::max_element(seconds.values) - seconds.values.begin();
  const double sum = std::accumulate(seconds.values.begin(), seconds.values.end(), 0.0);
  report::Document document;
  document.value("recipes", "recipes judged", names.size());
  document.value("mean_ms",
                 "judging a recipe",
                 1e3 * sum / static_cast<double>(names.size()),
                 {1, "ms"},
                 "of CPU time, mean");
  document.value("slowest_ms",
                 "the slowest",
                 1e3 * seconds.most(),
                 {1, "ms"},
                 names[static_cast<std::size_t>(slowest)]);
  document.json("slowest", names[static_cast<std::size_t>(slowest)]);
  document.json("most_ms", 1e3 * kMostSeconds);
  document.json("met", seconds.most() <= kMostSeconds);
  document.value("large_schedule_ms",
                 "1024 ranks",
                 1e3 * large_seconds(),
                 {0, "ms"},
                 "pp 16, vpp 2, ep 64, 64 layers, 64 micro-batches: judged, every schedule "
                 "verified");
  document.bars({{.name = "CPU seconds to judge the slowest recipe",
                  .value = seconds.most(),
                  .limit = kMostSeconds}});
  return document;
}

int run_check_bench(const CheckBenchOptions& options) {
  return run_bench(options.format,
                   [&](ProgressLine&) { return check_document(options.each, catch_interrupts()); });
}

}  // namespace

void add_bench_check(CLI::App& bench, Action& chosen) {
  CLI::App* command = bench.add_subcommand(
      "check",
      "what judging costs: every recipe, and a 1024-rank layout with its schedules");
  auto options = std::make_shared<CheckBenchOptions>();
  add_format(*command, options->format);
  command->add_option("--each", options->each, "judge every so many of the recipes (default: 1)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command->footer("Example: weft bench check --json");
  on_chosen(*command, chosen, std::move(options), run_check_bench);
}

}  // namespace weft::cli
