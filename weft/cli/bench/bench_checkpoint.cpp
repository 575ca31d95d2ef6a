// weft bench checkpoint: saves and loads against the speed of memory and disk.
#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/run/temporary_folder.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/measure/bench/checkpoint_bench.h"

namespace weft::cli {
namespace {

using base::text;
using measure::CheckpointBench;
using measure::RatePair;
using report::Bar;

struct CheckpointBenchOptions {
  RunArguments run{.default_recipe = "cpu_small"};
  int steps = 10, rounds = 4;
};

std::vector<Bar> bars_of(const CheckpointBench& bench) {
  return {{.name = "copy over memory bandwidth",
           .value = bench.copy.share,
           .limit = 0.6,
           .kind = Bar::Kind::AtLeast},
          {.name = "writing over plain writing",
           .value = bench.write.share,
           .limit = 0.8,
           .kind = Bar::Kind::AtLeast},
          {.name = "reading over plain reading",
           .value = bench.read.share,
           .limit = 0.8,
           .kind = Bar::Kind::AtLeast},
          {.name = "% that a save beside the run adds to its steps, the copy aside",
           .value = bench.overhead * 100,
           .limit = 1}};
}

report::Document document_of(const CheckpointBench& bench, int steps) {
  report::Document document;
  document.line(text("one rank, {} of state", base::human_bytes(double(bench.bytes))));
  document.json("bytes", bench.bytes);
  document.value("checksum_gb_per_second", "checksum", bench.checksum / 1e9, {2, "GB/s"});
  const auto rates = [&](const char* name, const RatePair& pair, const char* plain) {
    document.value("",
                   name,
                   pair.own / 1e9,
                   {2, "GB/s"},
                   text("{:.0f} % of {:.2f} GB/s, {}", pair.share * 100, pair.plain / 1e9, plain));
    document.json(name,
                  {{"gb_per_second", pair.own / 1e9},
                   {"plain_gb_per_second", pair.plain / 1e9},
                   {"share", pair.share}});
  };
  rates("copy", bench.copy, "memcpy on the rank's threads");
  rates("write", bench.write, "plain writes of 1 MiB and a sync");
  rates("read", bench.read, "plain reads of 1 MiB, both from the disk");
  document.value("step_ms", "step", bench.step_seconds * 1e3, {0, "ms"}, "without a save beside");
  document.json("steps_between_saves", steps);
  document.value("save_ms",
                 "save",
                 bench.save_seconds * 1e3,
                 {0, "ms"},
                 text("beside the steps, one in {}", steps));
  document.value("overhead",
                 "adds",
                 bench.overhead,
                 report::percent(2),
                 "to the time of the steps, the copy aside");
  document.value("cpu_overhead",
                 "adds CPU time",
                 bench.cpu_overhead,
                 report::percent(2),
                 "to that of the steps");
  document.bars(bars_of(bench));
  return document;
}

// Temporary folder of the bench, apart from the user's files.
TemporaryFolder folder_for(const config::Config& config) {
  const std::string& in = config.checkpoint.save;
  return in.empty() ? TemporaryFolder() : TemporaryFolder(in);
}

config::Config saving_config(config::Config config, const TemporaryFolder& folder) {
  config.checkpoint.async_save = true;
  config.checkpoint.most_recent_k = 1;
  config.checkpoint.save = folder.path().string();
  return config;
}

int run_checkpoint_bench(const CheckpointBenchOptions& options) {
  const words::Resolution run = resolve_bench(options.run, "bench checkpoint times one process");
  const TemporaryFolder folder = folder_for(run.config);
  const rules::JudgedConfig config =
      require_one_rank(saving_config(run.config, folder), "bench checkpoint times one rank");
  return run_bench(options.run.format, [&](ProgressLine& line) {
    return document_of(measure::bench_checkpoint({.config = config,
                                                  .steps = options.steps,
                                                  .rounds = options.rounds,
                                                  .progress = progress_on(line, "turn"),
                                                  .stop = &catch_interrupts()}),
                       options.steps);
  });
}

}  // namespace

void add_bench_checkpoint(CLI::App& bench, Action& chosen) {
  CLI::App* checkpoint = bench.add_subcommand(
      "checkpoint",
      "saves and loads of one rank against memory and disk, and what a save beside the run costs; "
      "without a recipe, cpu_small");
  auto options = std::make_shared<CheckpointBenchOptions>();
  add_run_arguments(*checkpoint,
                    options->run,
                    "weft bench checkpoint cpu_small checkpoint.save=/scratch");
  checkpoint->footer(
      "checkpoint.save=DIR names the disk: a folder is made in it, and removed at the end.\n\n" +
      checkpoint->get_footer());
  within(2, 10000, checkpoint->add_option("--steps", options->steps, "from one save to the next"))
      ->capture_default_str();
  within(1,
         1000,
         checkpoint->add_option("--rounds",
                                options->rounds,
                                "of everything; an even number is fair to both ways of reading"))
      ->capture_default_str();
  on_chosen(*checkpoint, chosen, std::move(options), run_checkpoint_bench);
}

}  // namespace weft::cli
