// weft bench dispatch: bytes of each dispatcher, counted and predicted, and its time.
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/bench/dispatch_report.h"
#include "weft/cli/help.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/machine.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/derive/derived.h"

namespace weft::cli {
namespace {

using base::text;

struct DispatchOptions {
  RunArguments run;
  std::int64_t experts = 64, topk = 8, ep = 8, hidden = 1024, tokens = 512;
  std::optional<std::int64_t> given_ranks_per_node;
  std::int64_t copy_tokens = 4096;
  base::DType dtype = base::DType::F32;
  int rounds = 3;

  std::int64_t ranks_per_node() const {
    return given_ranks_per_node.value_or(std::gcd(ep, std::int64_t{4}));
  }
};

constexpr std::string_view kAllowed[] = {"fabric.intra_node_gb_per_second",
                                         "fabric.inter_node_gb_per_second",
                                         "fabric.intra_node_latency_us",
                                         "fabric.inter_node_latency_us",
                                         "fabric.jitter_us",
                                         "fabric.seed",
                                         "runtime.device",
                                         "runtime.threads_per_rank",
                                         "runtime.pin_ranks",
                                         "runtime.timeout_seconds"};
constexpr std::int64_t kMostRanks = 256;  // threads of one process

void check_shape(const DispatchOptions& options, std::vector<std::string>& complaints) {
  if (options.topk > options.experts) {
    complaints.push_back(
        text("--topk {} of --experts {}: a token cannot choose more experts than "
             "there are; lower --topk",
             options.topk,
             options.experts));
  }
  if (options.experts % options.ep != 0) {
    complaints.push_back(
        text("--experts {} cannot be dealt evenly to --ep {} ranks; use a multiple "
             "of {}",
             options.experts,
             options.ep,
             options.ep));
  }
  if (options.ep % options.ranks_per_node() != 0) {
    complaints.push_back(
        text("--ranks-per-node {} does not divide --ep {}: every machine has as many "
             "ranks; use a divisor of {}",
             options.ranks_per_node(),
             options.ep,
             options.ep));
  }
}

// Approximate peak memory of the bench: three sets of rows in flight per rank, or five of the
// copies at twice the width.
double bytes_of(const DispatchOptions& options) {
  const double size = options.dtype == base::DType::F32 ? 4 : 2;
  const double row = static_cast<double>(options.hidden) * size;
  const auto tokens = static_cast<double>(options.tokens), ep = static_cast<double>(options.ep);
  const double in_flight = static_cast<double>(std::max(options.ep, options.topk)) * tokens;
  const double slots = static_cast<double>(options.copy_tokens * options.topk);
  return std::max(ep * row * (4 * tokens + 3 * in_flight), 5 * slots * 2 * row + 8 * slots * ep);
}

void check_memory(const DispatchOptions& options, std::vector<std::string>& complaints) {
  const double needed = bytes_of(options);
  const auto memory = static_cast<double>(this_machine().memory_bytes);
  if (memory <= 0 || needed <= memory) return;
  complaints.push_back(
      text("--ep {} --tokens {} --hidden {} --copy-tokens {} take about {}, and this machine has "
           "{}: lower one of them",
           options.ep,
           options.tokens,
           options.hidden,
           options.copy_tokens,
           base::human_bytes(needed),
           base::human_bytes(memory)));
}

// Smallest run with such an expert layer: only its rows travel here.
config::Config run_of(const DispatchOptions& options, config::Config config) {
  config.model.num_layers = 1;
  config.model.num_attention_heads = 1;
  config.model.kv_channels = 2;
  config.model.moe_ffn_hidden_size = 1;
  config.model.num_moe_experts = options.experts;
  config.model.moe_router_topk = options.topk;
  config.model.moe_router_pre_softmax = true;  // --topk 1 requires it; nothing is routed by it
  config.model.hidden_size = options.hidden;
  config.model.params_dtype = options.dtype;
  config.model.expert_model_parallel_size = options.ep;
  config.train.global_batch_size = options.ep;
  config.runtime.world_size = options.ep;
  config.runtime.ranks_per_node = options.ranks_per_node();
  return config;
}

// Combines errors in the user's keys with errors in the options.
rules::JudgedConfig config_of(const DispatchOptions& options) {
  const words::Resolution run = resolve(options.run);
  std::vector<std::string> complaints;
  if (!run.recipe.empty()) {
    complaints.push_back(
        text("{}: bench dispatch takes no recipe, but --experts, --topk, --ep, "
             "--hidden, --tokens",
             run.recipe));
  }
  allow_only(run, kAllowed, "the options of bench dispatch decide it");
  const config::Config config = run_of(options, run.config);
  check_shape(options, complaints);
  check_memory(options, complaints);
  for (const config::Finding& error : rules::judge(config).errors) {
    if (std::ranges::find(kAllowed, error.key) == std::end(kAllowed)) continue;
    complaints.push_back(config::to_text(error));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  print_findings(run);
  return rules::validate(config).judged.value();
}

int run_dispatch(const DispatchOptions& options) {
  if (under_launcher()) {
    throw base::ConfigError("bench dispatch runs ranks as threads: run it without mpirun");
  }
  const rules::JudgedConfig config = config_of(options);
  return run_bench(options.run.format, [&](ProgressLine& line) {
    const std::atomic<bool>& stop = catch_interrupts();
    DispatchReport report{.config = config,
                          .tokens = options.tokens,
                          .links_chosen = derive::fabric_of(config).is_free(),
                          .bench = measure::bench_dispatch({.config = config,
                                                            .tokens = options.tokens,
                                                            .rounds = options.rounds,
                                                            .progress = progress_on(line, "trip"),
                                                            .stop = &stop}),
                          .copies = {}};
    // Copies are compared with memcpy on threads; bench gpu measures a GPU's copies.
    const bool on_cpu = config->runtime.device == config::DeviceKind::Cpu;
    if (options.copy_tokens > 0 && on_cpu) {
      const int threads = static_cast<int>(config->runtime.threads_per_rank);
      report.copies = measure::bench_row_copies(
          {.tokens = options.copy_tokens,
           .experts = options.experts,
           .topk = options.topk,
           .hidden = {options.hidden, 2 * options.hidden},
           .threads = threads > 1 ? std::vector<int>{1, threads} : std::vector<int>{1},
           .ranks = options.ep,
           .dtype = options.dtype == base::DType::F32 ? tensor::DType::F32 : tensor::DType::BF16,
           .rounds = 4 * options.rounds,
           .stop = &stop,
           .progress = progress_on(line, "copies")});
    }
    return document_of(report);
  });
}

}  // namespace

void add_bench_dispatch(CLI::App& bench, Action& chosen) {
  CLI::App* dispatch = bench.add_subcommand(
      "dispatch",
      "every dispatcher: rows and bytes inside and between machines, counted and predicted, time "
      "over "
      "emulated links and without, memory; and the local copies against memcpy");
  auto options = std::make_shared<DispatchOptions>();
  add_run_arguments(*dispatch, options->run, "");
  dispatch->formatter(std::make_shared<HelpFormat>("[a.b=c ...]"));
  dispatch->footer(
      "Words: fabric.* gives the links (without any, the wire takes ten times the copies and is "
      "ten\n"
      "  times slower between machines); runtime.device (cuda: all ranks on one card, no copies),\n"
      "  threads_per_rank, pin_ranks and timeout_seconds.\n"
      "Example: weft bench dispatch --experts 256 --topk 8 --ep 16 --ranks-per-node 4\n"
      "What travels, byte by byte: docs/dispatch.md");
  const auto number =
      [&](const char* name, std::int64_t& value, const char* what, double low, double high) {
        within(low, high, dispatch->add_option(name, value, what))->capture_default_str();
      };
  number("--experts", options->experts, "experts of the layer", 1, 1 << 16);
  number("--topk", options->topk, "experts of a token", 1, 256);
  number("--ep", options->ep, "ranks, as threads", 2, kMostRanks);
  within(1,
         kMostRanks,
         dispatch->add_option("--ranks-per-node",
                              options->given_ranks_per_node,
                              "ranks of a machine; without it 4, or what of 4 divides --ep"));
  number("--hidden", options->hidden, "values of a token", 1, 1 << 20);
  number("--tokens", options->tokens, "tokens of each rank", 1, 1 << 24);
  number("--copy-tokens",
         options->copy_tokens,
         "tokens of the copies held against memcpy; 0: leave them out",
         0,
         1 << 24);
  dispatch->add_option("--dtype", options->dtype, "of what travels")
      ->transform(CLI::CheckedTransformer(
                      std::vector<std::pair<std::string, base::DType>>{{"fp32", base::DType::F32},
                                                                       {"bf16", base::DType::BF16}})
                      .description(""))
      ->type_name("bf16|fp32")
      ->default_str("fp32");
  within(1,
         1000,
         dispatch->add_option("--rounds",
                              options->rounds,
                              "timed runs of each dispatcher on each fabric"))
      ->capture_default_str();
  on_chosen(*dispatch, chosen, std::move(options), run_dispatch);
}

}  // namespace weft::cli
