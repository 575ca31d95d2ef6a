// weft bench offload: AdamW on state in host memory against the host's link and memory.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/measure/bench/offload_bench.h"

namespace weft::cli {
namespace {

using base::text;
using measure::OffloadBench;
using report::Bar;

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

// Remark for runs on processor cores. Beside a GPU the bar tells whether its host keeps up; cores
// as the device copy within their own memory.
constexpr const char* kOnCores =
    "on processor cores: the link is a copy within the same memory, which the same cores make "
    "beside AdamW; the figure is of this program's threads, and says nothing of a GPU's host";

report::Document document_of(const OffloadBench& bench, config::DeviceKind device) {
  report::Document document;
  document.line(text("one rank, the optimizer state of {} parameters in host memory, {}",
                     bench.parameters,
                     base::counted(bench.buckets, "bucket")));
  document.json("parameters", bench.parameters);
  document.json("buckets", bench.buckets);
  document.value("update_ms",
                 "update",
                 bench.seconds * 1e3,
                 {2, "ms"},
                 "from the norm to the last weights that are back");
  document.value("step_ms", "step", bench.step_seconds * 1e3, {2, "ms"});
  document.value("gb_per_second",
                 "AdamW",
                 bench.rate() / 1e9,
                 {2, "GB/s"},
                 "read and written by the host's cores");
  document.value(
      "host_memory_gb_per_second",
      "host memory",
      bench.memory_rate / 1e9,
      {2, "GB/s"},
      text("a copy by the same threads: {:.2f} ms at least", bench.memory_seconds() * 1e3));
  document.value(
      "download_gb_per_second",
      "host link",
      bench.down_rate / 1e9,
      {2, "GB/s"},
      text("down, {:.2f} up: {:.2f} ms at least", bench.up_rate / 1e9, bench.link_seconds() * 1e3));
  document.json("upload_gb_per_second", bench.up_rate / 1e9);
  document.json("least_memory_ms", bench.memory_seconds() * 1e3);
  document.json("least_link_ms", bench.link_seconds() * 1e3);
  document.json("share", bench.share());
  document.bars({bar_of(bench)});
  if (device == config::DeviceKind::Cpu) document.line(kOnCores);
  return document;
}

rules::JudgedConfig offloading_config(config::Config config) {
  if (!derive::optimizer_offload(config).is_on()) {
    config.optimizer.optimizer_cpu_offload = true;
    config.optimizer.optimizer_offload_fraction = 1;
    config.optimizer.overlap_cpu_optimizer_d2h_h2d = true;
  }
  const rules::JudgedConfig judged = require_one_rank(config, "bench offload times one rank");
  if (const auto limit = machine_limit(judged)) {
    throw base::ConfigError(text("{}: {}", limit->message, limit->fix));
  }
  return judged;
}

int run_offload_bench(const OffloadBenchOptions& options) {
  const words::Resolution run = resolve_bench(options.run, "bench offload times one process");
  const rules::JudgedConfig config = offloading_config(run.config);
  return run_bench(options.run.format, [&](ProgressLine& line) {
    return document_of(measure::bench_offload({.config = config,
                                               .steps = options.steps,
                                               .progress = progress_on(line, "turn"),
                                               .stop = &catch_interrupts()}),
                       config->runtime.device);
  });
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
