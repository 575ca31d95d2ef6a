// weft bench offload: AdamW on state in host memory against the host's link and memory.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/output.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/cli/terminal/bar.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/derive/derived.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/measure/bench/offload_bench.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

using base::text;
using measure::OffloadBench;

constexpr double kLeastShare = 0.8;

struct OffloadBenchOptions {
  RunArguments run{.default_recipe = "cpu_small"};
  int steps = 5;
};

Bar bar_of(const OffloadBench& bench) {
  return {.name = text("offloaded AdamW over the host {}'s rate",
                       bench.is_bound_by_link() ? "link" : "memory"),
          .value = bench.share(),
          .limit = kLeastShare,
          .kind = Bar::Kind::AtLeast};
}

void print_offload_json(const OffloadBench& bench) {
  print_json({{"parameters", bench.parameters},
              {"buckets", bench.buckets},
              {"update_ms", bench.seconds * 1e3},
              {"step_ms", bench.step_seconds * 1e3},
              {"gb_per_second", bench.rate() / 1e9},
              {"host_memory_gb_per_second", bench.memory_rate / 1e9},
              {"download_gb_per_second", bench.down_rate / 1e9},
              {"upload_gb_per_second", bench.up_rate / 1e9},
              {"least_memory_ms", bench.memory_seconds() * 1e3},
              {"least_link_ms", bench.link_seconds() * 1e3},
              {"share", bench.share()},
              {"bars", base::Json::array({to_json(bar_of(bench))})}});
}

// Remark for runs on processor cores. Beside a GPU the bar tells whether its host keeps up; cores
// as the device copy within their own memory.
constexpr const char* kOnCores =
    "on processor cores: the link is a copy within the same memory, which the same cores make "
    "beside AdamW; the figure is of this program's threads, and says nothing of a GPU's host\n";

void print_offload_text(const OffloadBench& bench) {
  print_text(text("one rank, the optimizer state of {} parameters in host memory, {}\n",
                  bench.parameters,
                  base::counted(bench.buckets, "bucket")));
  print_text(
      text("update          {:10.2f} ms    from the norm to the last weights that are back\n",
           bench.seconds * 1e3));
  print_text(text("step            {:10.2f} ms\n", bench.step_seconds * 1e3));
  print_text(text("AdamW           {:10.2f} GB/s  read and written by the host's cores\n",
                  bench.rate() / 1e9));
  print_text(text("host memory     {:10.2f} GB/s  a copy by the same threads: {:.2f} ms at least\n",
                  bench.memory_rate / 1e9,
                  bench.memory_seconds() * 1e3));
  print_text(text("host link       {:10.2f} GB/s  down, {:.2f} up: {:.2f} ms at least\n",
                  bench.down_rate / 1e9,
                  bench.up_rate / 1e9,
                  bench.link_seconds() * 1e3));
  print_text(to_text(bar_of(bench)) + "\n");
}

rules::JudgedConfig offloading_config(config::Config config) {
  if (!derive::optimizer_offload(config).is_on()) {
    config.optimizer.optimizer_cpu_offload = true;
    config.optimizer.optimizer_offload_fraction = 1;
    config.optimizer.overlap_cpu_optimizer_d2h_h2d = true;
  }
  const rules::JudgedConfig judged = rules::validate(config).judged.value();
  if (derive::layout_of(judged).world != 1) {
    throw base::ConfigError(
        "bench offload times one rank: set world=1 and every parallel size to 1");
  }
  if (const auto limit = machine_limit(judged)) {
    throw base::ConfigError(text("{}: {}", limit->message, limit->fix));
  }
  return judged;
}

int run_offload_bench(const OffloadBenchOptions& options) {
  if (under_launcher()) {
    throw base::ConfigError("bench offload times one process: run it without mpirun");
  }
  const words::Resolution run = resolve(options.run);
  refuse_foreign_launcher(run);
  print_findings(run);
  const rules::JudgedConfig config = offloading_config(run.config);
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line;
  const OffloadBench bench = measure::bench_offload(
      {.config = config,
       .steps = options.steps,
       .progress =
           [&](int done, int of) {
             line.show(text("{} step {}/{}", bar(double(done) / of, 24), done, of));
           },
       .stop = &stop});
  line.clear();
  if (stop.load()) return stopped_bench(options.run.format);
  switch (options.run.format) {
    case Format::Text:
      print_offload_text(bench);
      if (config->runtime.device == config::DeviceKind::Cpu) print_text(kOnCores);
      break;
    case Format::Json:
      print_offload_json(bench);
      break;
  }
  return bar_of(bench).met() ? kGood : kFailed;
}

}  // namespace

void add_bench_offload(CLI::App& bench, Action& chosen) {
  CLI::App* offload = bench.add_subcommand(
      "offload",
      "AdamW on optimizer state in host memory against the host's link and memory; without a "
      "recipe, cpu_small; all state is offloaded and copies overlap, unless optimizer.* says");
  auto options = std::make_shared<OffloadBenchOptions>();
  add_run_arguments(*offload,
                    options->run,
                    "weft bench offload cpu_small runtime.threads_per_rank=2");
  within(1, 1000, offload->add_option("--steps", options->steps, "timed"))->capture_default_str();
  on_chosen(*offload, chosen, std::move(options), run_offload_bench);
}

}  // namespace weft::cli
