// weft bench gpu: ceilings of a GPU, the rates of the engine's operations and the whole step,
// against PyTorch and Transformers on the same GPU.
#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/bench/gpu_bench_report.h"
#include "weft/cli/run/gpu_peers.h"
#include "weft/cli/run/peer_program.h"
#include "weft/cli/run/temporary_folder.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/derive/derived.h"
#include "weft/kernels/device.h"
#include "weft/kernels/kernels.h"
#include "weft/measure/device/card_clock.h"
#include "weft/measure/device/device_kernels.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

using base::text;
using measure::DeviceRate;
using measure::DeviceTimer;
using tensor::Deterministic;

constexpr double kLeastCopyShareOfAdamW = 0.80, kLeastCopyShareOfRows = 0.75;
constexpr double kLeastProductRatio = 1.0, kLeastAttentionRatio = 0.95;

enum class Part { Ceilings, Kernels, Products, Attention, Step };
constexpr std::array<std::string_view, 5> kParts{"ceilings",
                                                 "kernels",
                                                 "products",
                                                 "attention",
                                                 "step"};

struct GpuOptions {
  RunArguments run{.default_recipe = "qwen3_30b_a3b_gpu"};
  std::vector<std::string> only;
  bool peer = false;
  int rounds = 5;
  int peer_limit_seconds = 900;

  bool has(Part part) const {
    return only.empty() || std::ranges::find(only, kParts[std::size_t(part)]) != only.end();
  }
};

void check_for_gpu(const config::Config& config) {
  std::vector<std::string> complaints;
  if (config.runtime.device != config::DeviceKind::Cuda) {
    complaints.emplace_back("bench gpu measures a GPU: set runtime.device=cuda");
  }
  if (derive::layout_of(config).world != 1) {
    complaints.emplace_back(
        "bench gpu measures one card: set world=1 and every parallel size to 1");
  }
  if (config.train.global_batch_size != config.train.micro_batch_size) {
    complaints.push_back(
        text("bench gpu times one micro-batch: set train.global_batch_size = "
             "train.micro_batch_size (they are {} and {})",
             config.train.global_batch_size,
             config.train.micro_batch_size));
  }
  if (config.model.experts() == 0) {
    complaints.emplace_back("bench gpu times experts: set model.num_moe_experts");
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

const kernels::Gpu& first_gpu(const kernels::GpuReport& report) {
  if (report.gpus.empty()) throw base::SystemError(text("there is no GPU: {}", report.why_none));
  const kernels::Gpu& gpu = report.gpus.front();
  if (!gpu.why_not.empty()) throw base::SystemError(text("{}: {}", gpu.name, gpu.why_not));
  return gpu;
}

std::string model_text(const config::Config& config) {
  return text("{}, {} of width {}, {}, {} x {} tokens",
              config.model.params_dtype == base::DType::BF16 ? "bf16" : "fp32",
              base::counted(config.model.num_layers, "layer"),
              config.model.hidden_size,
              base::counted(config.model.experts(), "expert"),
              config.train.micro_batch_size,
              config.model.seq_length);
}

// Bar for expert weight gradients on an H200 in FLOP/s: 4096 tokens are 128 x 256 rows, all other
// cases are 16384.
std::optional<double> least_wgrad(const std::string& card,
                                  const measure::GroupedProduct& product,
                                  kernels::Write write) {
  if (card.find("H200") == std::string::npos || product.name != "FC1") return std::nullopt;
  const bool adds = write == kernels::Write::Accumulate;
  if (product.rows_name.ends_with(" x 256 rows")) return adds ? 220e12 : 400e12;
  return adds ? 600e12 : 650e12;
}

class GpuRun {
 public:
  GpuRun(const GpuOptions& options,
         const rules::JudgedConfig& config,
         const kernels::Gpu& card,
         ProgressLine& line)
      : options_(options),
        config_(config),
        stop_(catch_interrupts()),
        line_(line),
        clock_(measure::CardClock::watch(card.pci)) {
    bench_.card = card.name;
    if (card.major == 9 && card.minor == 0) {
      hopper_ = {.is_hopper = true,
                 .multiprocessors = card.multiprocessors,
                 .shared_bytes = kernels::hopper::kMostSharedBytes};
    }
    bench_.model = model_text(config);
    if (clock_) {
      bench_.clock = {.most_mhz = clock_->most_mhz(), .most_watts = clock_->most_watts()};
    }
  }

  GpuBench all() {
    if (options_.peer && (options_.has(Part::Products) || options_.has(Part::Attention))) {
      ask_torch();
    }
    measure_on(Deterministic::Yes);
    if (options_.has(Part::Attention)) measure_on(Deterministic::No);
    if (options_.has(Part::Step)) step();
    return std::move(bench_);
  }

 private:
  measure::NoteOperation note() { return notes_on(line_); }
  void throw_if_stopped() const { measure::throw_if_stopped(&stop_); }
  // Runs a part of the bench and records the GPU's clock meanwhile.
  template <typename Work>
  void during(std::string name, const Work& work) {
    const std::int64_t begin_ns = tensor::now_ns();
    work();
    if (!clock_) return;
    const measure::ClockSpan span = clock_->between(begin_ns, tensor::now_ns());
    if (span.samples > 0) bench_.clock->parts.push_back({std::move(name), span});
  }
  ChildOptions child_options() {
    return {.limit_seconds = double(options_.peer_limit_seconds),
            .stop = &stop_,
            .progress = note()};
  }

  void ask_torch() {
    const TemporaryFolder folder;
    const std::filesystem::path settings = folder.path() / "settings.json";
    const auto products = options_.has(Part::Products) ? measure::grouped_products(config_->model)
                                                       : std::vector<measure::GroupedProduct>();
    const auto attention = options_.has(Part::Attention) ? measure::attention_cases()
                                                         : std::vector<measure::AttentionCase>();
    base::write_whole(settings, torch_settings(products, attention, options_.rounds).dump());
    torch_ =
        ask_peer("torch_kernels.py", {settings.string()}, child_options(), bench_.peer_failures);
    throw_if_stopped();
  }

  // Measures operations independent of the mode only in the default mode.
  void measure_on(Deterministic deterministic) {
    const auto device = kernels::make_cuda_device(0, deterministic);
    DeviceTimer timer(*device, {.rounds = options_.rounds, .stop = &stop_});
    if (deterministic == Deterministic::Yes) {
      line_.show("ceilings");
      during("ceilings", [&] { bench_.ceilings = measure::bench_ceilings(timer, {}); });
      if (options_.has(Part::Kernels)) during("kernels", [&] { kernels(timer); });
      if (options_.has(Part::Products)) products(timer);
    }
    if (!options_.has(Part::Attention)) return;
    const bool same = deterministic == Deterministic::Yes;
    during(text("attention, {}", same ? "same bits" : "bits vary"),
           [&] { attention(timer, deterministic); });
  }

  void kernels(DeviceTimer& timer) {
    for (DeviceRate& rate :
         measure::bench_kernels(timer, measure::kernel_shapes(config_), note())) {
      GpuLine& line = bench_.lines.emplace_back(GpuLine{.section = GpuSection::Kernels,
                                                        .rate = std::move(rate),
                                                        .ceiling = bench_.ceilings.copy});
      if (line.rate.name == "adamw") line.least_share = kLeastCopyShareOfAdamW;
      if (line.rate.name == "permute" || line.rate.name == "unpermute") {
        line.least_share = kLeastCopyShareOfRows;
      }
    }
  }

  GpuLine& add_product(const DeviceRate& rate, GpuSection section = GpuSection::Products) {
    return bench_.lines.emplace_back(
        GpuLine{.section = section, .rate = rate, .ceiling = bench_.ceilings.flops});
  }

  // Tiles depend on widths alone, so that a product has one choice for all row counts.
  void add_tiles(const measure::GroupedProduct& product) {
    using kernels::hopper::Pass;
    if (!hopper_ ||
        std::ranges::find(bench_.tiles, product.name, &GpuTile::name) != bench_.tiles.end())
      return;
    for (const Pass pass : {Pass::Forward, Pass::Dgrad, Pass::Wgrad}) {
      const kernels::hopper::TileDesc desc{.pass = pass,
                                           .n = pass == Pass::Forward ? product.n : product.k};
      bench_.tiles.push_back({product.name, desc, kernels::hopper::choose_tile(desc, *hopper_)});
    }
  }

  void products(DeviceTimer& timer) {
    during("dense products", [&] {
      for (const measure::DenseProduct& product : measure::dense_products(config_)) {
        for (const DeviceRate& rate : measure::bench_product(timer, product, note()).all()) {
          add_product(rate);
        }
      }
    });
    const std::vector<measure::GroupedProduct> grouped = measure::grouped_products(config_->model);
    for (std::size_t i = 0; i < grouped.size(); ++i) {
      add_tiles(grouped[i]);
      measure::ProductRates rates;
      during(text("{}, {}", grouped[i].name, grouped[i].rows_name),
             [&] { rates = measure::bench_product(timer, grouped[i], note()); });
      const auto add = [&](const DeviceRate& rate, const char* direction) -> GpuLine& {
        GpuLine& line = add_product(rate);
        if (torch_) hold_against(line, product_time(*torch_, i, direction));
        return line;
      };
      add(rates.forward, "forward").least_ratio = kLeastProductRatio;
      add(rates.dgrad, "dgrad").least_ratio = kLeastProductRatio;
      add(rates.wgrad, "wgrad").least_rate =
          least_wgrad(bench_.card, grouped[i], kernels::Write::Assign);
      add(rates.adding_wgrad, "wgrad").least_rate =
          least_wgrad(bench_.card, grouped[i], kernels::Write::Accumulate);
    }
  }

  void attention(DeviceTimer& timer, Deterministic deterministic) {
    const std::vector<measure::AttentionCase> cases = measure::attention_cases();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const measure::AttentionRates rates = measure::bench_attention(timer, cases[i], note());
      const auto add = [&](DeviceRate rate, const char* direction) {
        rate.shape += deterministic == Deterministic::Yes ? ", same bits" : ", bits vary";
        GpuLine& line = add_product(rate, GpuSection::Attention);
        line.least_ratio = kLeastAttentionRatio;
        if (torch_) hold_against(line, attention_time(*torch_, i, deterministic, direction));
      };
      add(rates.forward, "forward");
      add(rates.backward, "backward");
    }
  }

  static void hold_against(GpuLine& line, const std::optional<PeerTime>& peer) {
    if (!peer) return;
    line.peer = peer->name;
    line.peer_seconds = peer->seconds;
  }

  void step() {
    throw_if_stopped();
    std::optional<TemporaryFolder> folder;
    if (options_.peer) folder.emplace();
    during("step", [&] {
      bench_.step =
          measure::bench_device_step({.config = config_,
                                      .rounds = 2 * options_.rounds,
                                      .leave_in = folder ? folder->path() : std::filesystem::path(),
                                      .note = note(),
                                      .stop = &stop_});
    });
    if (!folder) return;
    base::write_whole(
        folder->path() / "settings.json",
        transformers_settings(*bench_.step, config_->model.seq_length, 2 * options_.rounds).dump());
    const std::optional<base::Json> answer = ask_peer("transformers_step.py",
                                                      {folder->path().string()},
                                                      child_options(),
                                                      bench_.peer_failures);
    throw_if_stopped();
    if (answer) bench_.step_peer = step_peer_of(*answer, *bench_.step);
  }

  const GpuOptions& options_;
  const rules::JudgedConfig& config_;
  const std::atomic<bool>& stop_;
  ProgressLine& line_;
  std::unique_ptr<measure::CardClock> clock_;    // nullptr: the driver does not report it
  std::optional<kernels::hopper::Card> hopper_;  // nullopt: the card is no Hopper
  std::optional<base::Json> torch_;
  GpuBench bench_;
};

int run_gpu(const GpuOptions& options) {
  const words::Resolution resolution = resolve_bench(options.run, "bench gpu times one process");
  const rules::JudgedConfig config = rules::validate(resolution.config).judged.value();
  check_for_gpu(config);
  const kernels::GpuReport report = kernels::gpu_report();
  const kernels::Gpu& gpu = first_gpu(report);
  bool has_peers = true;
  const int code = run_bench(options.run.format, [&](ProgressLine& line) {
    if (options.peer) {
      const std::atomic<bool>& stop = catch_interrupts();
      require_module("torch", stop);
      if (options.has(Part::Step)) require_module("transformers", stop);
      measure::throw_if_stopped(&stop);
    }
    const GpuBench bench = GpuRun(options, config, gpu, line).all();
    has_peers = bench.peer_failures.empty();
    return document_of(bench);
  });
  return code == kGood && !has_peers ? kFailed : code;
}

}  // namespace

void add_bench_gpu(CLI::App& bench, Action& chosen) {
  CLI::App* gpu = bench.add_subcommand(
      "gpu",
      "a GPU's ceilings, every operation against them, and the step, against PyTorch and "
      "Transformers; without a recipe, qwen3_30b_a3b_gpu");
  auto options = std::make_shared<GpuOptions>();
  add_run_arguments(*gpu, options->run, "weft bench gpu --only=products,attention --peer");
  comma_list(
      gpu->add_option("--only", options->only, "parts of it; the ceilings are always measured"))
      ->check(CLI::IsMember(std::vector<std::string>(kParts.begin(), kParts.end())).description(""))
      ->type_name(text("{}", fmt::join(kParts, "|")));
  gpu->add_flag("--peer",
                options->peer,
                "time PyTorch and Transformers on the same card, in the same run");
  within(1, 1000, gpu->add_option("--rounds", options->rounds, "of ten calls of each operation"))
      ->capture_default_str();
  within(1,
         86400,
         gpu->add_option("--peer-limit", options->peer_limit_seconds, "seconds a peer may take"))
      ->capture_default_str();
  on_chosen(*gpu, chosen, std::move(options), run_gpu);
}

}  // namespace weft::cli
