// weft bench: speed against the machine's ceiling and against peers, in one run.
#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/run/peer.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/derive/derived.h"
#include "weft/measure/bench/step_bench.h"
#include "weft/measure/runs/rounds.h"

namespace weft::cli {
namespace {

struct StepOptions {
  RunArguments run{.default_recipe = "cpu_small"};
  bool peer = false;
  int steps = 6;
};

report::Document document_of(const measure::StepBench& bench,
                             const config::Config& config,
                             const std::vector<PeerResult>& peers) {
  report::Document document;
  document.line(base::text("one rank, {}, {} a step",
                           base::counted(config.runtime.threads_per_rank, "thread"),
                           base::counted(derive::tokens_per_step(config), "token")));
  document.value("step_ms", "step", bench.step_seconds * 1e3, {1, "ms"});
  document.value("tokens_per_second", "tokens/s", bench.tokens_per_second, {0});
  document.value(
      "flops_per_second",
      "FLOP/s",
      bench.flops_per_second,
      {2, "G", 1e-9},
      base::text("model, {:.2f} MFLOP a token", derive::flops_per_token(config.model) / 1e6));
  document.value("sgemm_peak",
                 "sgemm peak",
                 bench.sgemm_peak,
                 {2, "G", 1e-9},
                 "2048^3, same threads, same run");
  document.value("share_of_peak", "share of peak", bench.share_of_peak(), report::percent());
  if (!peers.empty()) {
    report::Table& table = document.table("peers",
                                          {{"name", "peer"},
                                           {"step_ms", "step ms", {1}},
                                           {"tokens_per_second", "tokens/s", {0}},
                                           {"ratio", "ratio"},
                                           {"loss_difference", ""},
                                           {"", "losses equal to"}});
    for (const PeerResult& peer : peers) {
      table.row({peer.name,
                 peer.step_seconds * 1e3,
                 peer.tokens_per_second,
                 bench.tokens_per_second / peer.tokens_per_second,
                 peer.loss_difference,
                 base::text("{:.0e}", peer.loss_difference)});
    }
  }
  report::Document& peaks = document.section("peak_bytes", "peak memory");
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    const std::string name(tensor::name_of(static_cast<tensor::Tag>(tag)));
    peaks.value(name,
                name,
                bench.peak_bytes[static_cast<std::size_t>(tag)],
                {.form = report::Shown::Form::Bytes});
  }
  return document;
}

int run_step(const StepOptions& options) {
  const words::Resolution run = resolve_bench(options.run, "bench step times one process");
  const rules::JudgedConfig config = require_one_rank(run.config, "bench step times one rank");
  const std::atomic<bool>& stop = catch_interrupts();
  return run_bench(options.run.format, [&](ProgressLine& line) {
    std::optional<Peer> peer;
    measure::StepBenchRequest request{.config = config,
                                      .steps = options.steps,
                                      .between = {},
                                      .leave_in = {},
                                      .progress = progress_on(line, "turn"),
                                      .stop = &stop};
    if (options.peer) {
      peer.emplace(config, stop);
      measure::throw_if_stopped(&stop);
      request.leave_in = peer->folder();
      request.between = [&] {
        line.show("the same model in PyTorch");
        peer->run();
        measure::throw_if_stopped(&stop);
      };
    }
    const measure::StepBench bench = measure::bench_step(request);
    return document_of(bench,
                       config,
                       peer ? peer->compare(bench.losses) : std::vector<PeerResult>());
  });
}

}  // namespace

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
