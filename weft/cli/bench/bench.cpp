// weft bench: speed against the machine's ceiling and against peers, in one run.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/peer.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/derive/derived.h"
#include "weft/measure/bench/step_bench.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

struct StepOptions {
  RunArguments run{.default_recipe = "cpu_small"};
  bool peer = false;
  int steps = 6;
};

base::Json peak_json(const measure::StepBench& bench) {
  base::Json peaks = base::Json::object();
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    peaks[std::string(tensor::name_of(static_cast<tensor::Tag>(tag)))] =
        bench.peak_bytes[static_cast<std::size_t>(tag)];
  }
  return peaks;
}

void show_json(const measure::StepBench& bench, const std::vector<PeerResult>& peers) {
  base::Json json{{"step_ms", bench.step_seconds * 1e3},
                  {"tokens_per_second", bench.tokens_per_second},
                  {"flops_per_second", bench.flops_per_second},
                  {"sgemm_peak", bench.sgemm_peak},
                  {"share_of_peak", bench.share_of_peak()},
                  {"peak_bytes", peak_json(bench)}};
  for (const PeerResult& peer : peers) {
    json["peers"].push_back({{"name", peer.name},
                             {"step_ms", peer.step_seconds * 1e3},
                             {"tokens_per_second", peer.tokens_per_second},
                             {"ratio", bench.tokens_per_second / peer.tokens_per_second},
                             {"loss_difference", peer.loss_difference}});
  }
  print_json(json);
}

void show_text(const measure::StepBench& bench,
               const config::Config& config,
               const std::vector<PeerResult>& peers) {
  print_text(base::text("one rank, {}, {} a step\n",
                        base::counted(config.runtime.threads_per_rank, "thread"),
                        base::counted(derive::tokens_per_step(config), "token")));
  print_text(base::text("step            {:10.1f} ms\n", bench.step_seconds * 1e3));
  print_text(base::text("tokens/s        {:10.0f}\n", bench.tokens_per_second));
  print_text(base::text("FLOP/s          {:10.2f} G  (model, {:.2f} MFLOP a token)\n",
                        bench.flops_per_second / 1e9,
                        derive::flops_per_token(config.model) / 1e6));
  print_text(base::text("sgemm peak      {:10.2f} G  (2048^3, same threads, same run)\n",
                        bench.sgemm_peak / 1e9));
  print_text(base::text("share of peak   {:10.1f} %\n", bench.share_of_peak() * 100));
  for (const PeerResult& peer : peers) {
    print_text(
        base::text("ratio           {:10.2f}    to {}: {:.0f} tokens/s, losses equal to {:.0e}\n",
                   bench.tokens_per_second / peer.tokens_per_second,
                   peer.name,
                   peer.tokens_per_second,
                   peer.loss_difference));
  }
  print_text("peak memory    ");
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    print_text(base::text(
        " {} {}",
        tensor::name_of(static_cast<tensor::Tag>(tag)),
        base::human_bytes(static_cast<double>(bench.peak_bytes[static_cast<std::size_t>(tag)]))));
  }
  print_text("\n");
}

int run_step(const StepOptions& options) {
  if (under_launcher())
    throw base::ConfigError("bench step times one process: run it without mpirun");
  const words::Resolution run = resolve(options.run);
  refuse_foreign_launcher(run);
  print_findings(run);
  const rules::JudgedConfig config = rules::validate(run.config).judged.value();
  if (derive::layout_of(config).world != 1) {
    throw base::ConfigError("bench step times one rank: set world=1 and every parallel size to 1");
  }
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line;
  std::optional<Peer> peer;
  std::vector<PeerResult> peer_results;
  measure::StepBenchRequest request{
      .config = config,
      .steps = options.steps,
      .between = {},
      .leave_in = {},
      .progress =
          [&](int done, int of) {
            line.show(base::text("{} step {}/{}", bar(double(done) / of, 24), done, of));
          },
      .stop = &stop};
  if (options.peer) {
    peer.emplace(config, stop);
    if (stop.load()) return stopped_bench(options.run.format);
    request.leave_in = peer->folder();
    request.between = [&] {
      line.show("the same model in PyTorch");
      peer->run();
    };
  }
  const measure::StepBench bench = measure::bench_step(request);
  line.clear();
  if (stop.load()) return stopped_bench(options.run.format);
  if (peer) peer_results = peer->compare(bench.losses);
  switch (options.run.format) {
    case Format::Text:
      show_text(bench, config, peer_results);
      break;
    case Format::Json:
      show_json(bench, peer_results);
      break;
  }
  return kGood;
}

}  // namespace

int stopped_bench(Format format) {
  print_failure({"stopped before the end: nothing to report"}, format);
  return interrupted_code();
}

void add_bench(CLI::App& program, Action& chosen) {
  CLI::App* bench =
      program.add_subcommand("bench", "speed against the machine's ceiling and against peers");
  bench->require_subcommand(1);
  bench->footer("Example: weft bench step cpu_small --peer");
  CLI::App* step =
      bench->add_subcommand("step", "one training step of one rank; without a recipe, cpu_small");
  auto options = std::make_shared<StepOptions>();
  add_run_arguments(*step, options->run, "weft bench step cpu_small --peer");
  step->add_flag("--peer",
                 options->peer,
                 "time the same model in PyTorch, in the same run (python3-torch)");
  within(1, 10000, step->add_option("--steps", options->steps, "timed steps"))
      ->capture_default_str();
  on_chosen(*step, chosen, std::move(options), run_step);
  add_bench_overlap(*bench, chosen);
  add_bench_schedule(*bench, chosen);
  add_bench_check(*bench, chosen);
  add_bench_plan(*bench, chosen);
  add_bench_dispatch(*bench, chosen);
  add_bench_checkpoint(*bench, chosen);
  add_bench_gpu(*bench, chosen);
  add_bench_offload(*bench, chosen);
  add_bench_predict(*bench, chosen);
  add_bench_tune(*bench, chosen);
}

}  // namespace weft::cli
