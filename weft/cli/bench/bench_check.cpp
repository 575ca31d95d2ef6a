// weft bench check: time of judging every recipe, and of checking the schedules of a large layout.
#include <chrono>
#include <ctime>

#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/judge/check_run.h"
#include "weft/cli/output.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/plan/order/check_schedule.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct CheckBenchOptions {
  Format format = Format::Text;
  std::size_t each = 1;  // runs per recipe
};

// Limit of the program's CPU time for the slowest shipped recipe, including its memory check.
constexpr double kMostSeconds = 0.5;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

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

// Time of `weft check` on a recipe, without output.
double check_milliseconds(const std::string& name) {
  const double start = cpu_seconds();
  check_run({.run = {.words = {name}, .format = Format::Text}});
  return 1e3 * (cpu_seconds() - start);
}

// Layout of 1024 ranks: pp 16, vpp 2, ep 64, 64 layers, 64 micro-batches, overlapped.
double large_milliseconds() {
  config::Config config;
  config.model.num_layers = 64;
  config.model.num_moe_experts = 64;
  config.model.pipeline_model_parallel_size = 16;
  config.model.virtual_pipeline_model_parallel_size = 2;
  config.model.expert_model_parallel_size = 64;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.runtime.world_size = 1024;
  config.train.global_batch_size = 64 * 64;
  const Clock::time_point start = Clock::now();
  plan::check_schedule(rules::judge(config).config);
  return milliseconds_since(start);
}

int run_check_bench(const CheckBenchOptions& options) {
  const std::atomic<bool>& stop = catch_interrupts();
  const std::vector<std::string> names = all_names();
  std::string slowest;
  double most = 0, sum = 0;
  std::size_t judged = 0;
  for (std::size_t i = 0; i < names.size(); i += options.each) {
    const std::string& name = names[i];
    ++judged;
    const double taken = check_milliseconds(name);
    sum += taken;
    if (taken > most) slowest = name;
    most = std::max(most, taken);
    if (stop.load()) return stopped_bench(options.format);
  }
  const double large = large_milliseconds();
  const double mean = sum / static_cast<double>(judged);
  if (options.format == Format::Json) {
    print_json({{"recipes", judged},
                {"mean_ms", mean},
                {"slowest_ms", most},
                {"slowest", slowest},
                {"most_ms", 1e3 * kMostSeconds},
                {"met", most <= 1e3 * kMostSeconds},
                {"large_schedule_ms", large}});
    return most <= 1e3 * kMostSeconds ? kGood : kFailed;
  }
  print_text(base::text(
      "judging a recipe      {:8.1f} ms of CPU time  (mean of {}; the slowest, {}, {:.1f} ms; bar "
      "{:.0f})\n"
      "1024 ranks (pp 16, vpp 2, ep 64), 64 layers, 64 micro-batches, judged and every schedule "
      "verified\n                      {:8.0f} ms\n",
      mean,
      judged,
      slowest,
      most,
      1e3 * kMostSeconds,
      large));
  return most <= 1e3 * kMostSeconds ? kGood : kFailed;
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
