// weft bench checkpoint: saves and loads against the speed of memory and disk.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/output.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/temporary_folder.h"
#include "weft/cli/terminal/bar.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/derive/derived.h"
#include "weft/measure/bench/checkpoint_bench.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

using base::text;
using measure::CheckpointBench;
using measure::RatePair;

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

base::Json rates_json(const RatePair& rates) {
  return {{"gb_per_second", rates.own / 1e9},
          {"plain_gb_per_second", rates.plain / 1e9},
          {"share", rates.share}};
}

void print_as_json(const CheckpointBench& bench, int steps) {
  base::Json json{{"bytes", bench.bytes},
                  {"checksum_gb_per_second", bench.checksum / 1e9},
                  {"copy", rates_json(bench.copy)},
                  {"write", rates_json(bench.write)},
                  {"read", rates_json(bench.read)},
                  {"step_ms", bench.step_seconds * 1e3},
                  {"steps_between_saves", steps},
                  {"save_ms", bench.save_seconds * 1e3},
                  {"overhead", bench.overhead},
                  {"cpu_overhead", bench.cpu_overhead}};
  for (const Bar& bar : bars_of(bench)) json["bars"].push_back(to_json(bar));
  print_json(json);
}

void print_as_text(const CheckpointBench& bench, int steps) {
  print_text(text("one rank, {} of state\n", base::human_bytes(double(bench.bytes))));
  print_text(text("checksum        {:8.2f} GB/s\n", bench.checksum / 1e9));
  const auto line = [](const char* name, const RatePair& rates, const char* plain) {
    print_text(text("{:<15} {:8.2f} GB/s  {:3.0f} % of {:.2f} GB/s, {}\n",
                    name,
                    rates.own / 1e9,
                    rates.share * 100,
                    rates.plain / 1e9,
                    plain));
  };
  line("copy", bench.copy, "memcpy on the rank's threads");
  line("write", bench.write, "plain writes of 1 MiB and a sync");
  line("read", bench.read, "plain reads of 1 MiB, both from the disk");
  print_text(text("save            {:8.0f} ms    beside steps of {:.0f} ms, one in {}\n",
                  bench.save_seconds * 1e3,
                  bench.step_seconds * 1e3,
                  steps));
  print_text(text(
      "adds            {:8.2f} %     to their time, the copy aside; {:.2f} % to their CPU time\n",
      bench.overhead * 100,
      bench.cpu_overhead * 100));
  for (const Bar& bar : bars_of(bench)) print_text(to_text(bar) + "\n");
}

// Temporary folder of the bench, apart from the user's files.
TemporaryFolder folder_for(const config::Config& config) {
  const std::string& in = config.checkpoint.save;
  return in.empty() ? TemporaryFolder() : TemporaryFolder(in);
}

rules::JudgedConfig saving_config(config::Config config, const TemporaryFolder& folder) {
  config.checkpoint.async_save = true;
  config.checkpoint.most_recent_k = 1;
  config.checkpoint.save = folder.path().string();
  const rules::JudgedConfig judged = rules::validate(config).judged.value();
  if (derive::layout_of(judged).world != 1) {
    throw base::ConfigError(
        "bench checkpoint times one rank: set world=1 and every parallel size to 1");
  }
  return judged;
}

int run_checkpoint_bench(const CheckpointBenchOptions& options) {
  if (under_launcher()) {
    throw base::ConfigError("bench checkpoint times one process: run it without mpirun");
  }
  const words::Resolution run = resolve(options.run);
  refuse_foreign_launcher(run);
  print_findings(run);
  const TemporaryFolder folder = folder_for(run.config);
  const rules::JudgedConfig config = saving_config(run.config, folder);
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line;
  const CheckpointBench bench = measure::bench_checkpoint(
      {.config = config,
       .steps = options.steps,
       .rounds = options.rounds,
       .progress =
           [&](int done, int of) {
             line.show(text("{} turn {}/{}", bar(double(done) / of, 24), done, of));
           },
       .stop = &stop});
  line.clear();
  if (stop.load()) return stopped_bench(options.run.format);
  switch (options.run.format) {
    case Format::Text:
      print_as_text(bench, options.steps);
      break;
    case Format::Json:
      print_as_json(bench, options.steps);
      break;
  }
  return std::ranges::all_of(bars_of(bench), &Bar::met) ? kGood : kFailed;
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
