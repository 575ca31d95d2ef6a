#include "weft/cli/plan/plan_question.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/plan/plan_model.h"
#include "weft/cli/plan/program_option.h"
#include "weft/config/codec.h"
#include "weft/measure/runs/counted_step.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/hardware/run_hardware.h"
#include "weft/words/resolution.h"
#include "weft/words/words.h"

namespace weft::cli {
namespace {

using base::text;

// Formats to search: "bf16", several, or all of the GPU. fp32 is left out on GPUs whose tensor
// cores are many times faster in every other format.
std::vector<base::DType> numbers_asked(const std::string& asked_for,
                                       const config::ModelConfig& model,
                                       const plan::Hardware& hardware) {
  const bool is_gpu = hardware.device == config::DeviceKind::Cuda;
  const base::DType usual = is_gpu ? base::DType::BF16 : plan::number_of(model);
  const std::string written = asked_for.empty() ? std::string(name_of(usual)) : asked_for;
  std::vector<base::DType> known, asked;
  std::vector<std::string> has;
  for (const base::DType number : plan::kProductFormats) {
    if (hardware.peak(number) <= 0) continue;
    known.push_back(number);
    has.emplace_back(name_of(number));
  }
  if (written == "all") {
    if (is_gpu) std::erase(known, base::DType::F32);
    return known;
  }
  for (const std::string& each : base::split(written, ',')) {
    const auto found = std::ranges::find(has, each);
    if (found == has.end()) {
      throw base::ConfigError(text("--precision={}: {} has products in {}",
                                   base::shown(written),
                                   hardware.name,
                                   fmt::join(has, ", ")));
    }
    const base::DType number = known[static_cast<std::size_t>(found - has.begin())];
    if (std::ranges::find(asked, number) == asked.end()) asked.push_back(number);
  }
  return asked;
}

// Keys with an option of their own, so that a question has one spelling.
constexpr std::pair<std::string_view, std::string_view> kOwnOptions[] = {
    {"runtime.world_size", "--gpus"},
    {"train.global_batch_size", "--gbs"},
    {"model.seq_length", "--seq"},
    {"hardware.gpu", "--gpu"},
    {"model.fp8", "--precision"},
    {"model.fp8_recipe", "--precision"},
    {"model.fp4", "--precision"},
    {"model.bf16", "--precision"},
};

// Keys pinned by the words. Flags with side effects are for runs only.
plan::PinnedKeys pinned_keys(const std::vector<std::string>& words) {
  plan::PinnedKeys pinned;
  std::vector<std::string> complaints;
  for (const words::Asked& asked : words::read_words(words, words::Audience::Run).asked) {
    if (asked.key.empty()) {
      complaints.push_back(text("'{}': a plan takes keys, as in ep=8", base::shown(asked.typed)));
      continue;
    }
    for (const auto& [key, option] : kOwnOptions) {
      if (asked.key == key) complaints.push_back(text("{}: say it with {}", asked.typed, option));
    }
    pinned.insert(asked.key);
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
  return pinned;
}

// Words after MODEL, and those of --explain if it has keys.
std::vector<std::string> key_words(const PlanOptions& options) {
  const std::vector<std::string>& words = options.run.words;
  std::vector<std::string> keys;
  if (!options.model) keys.assign(words.begin() + 1, words.end());
  const std::string& explain = options.search.explain;
  if (explain.empty() || place_asked(explain)) return keys;
  std::string line = explain;
  if (line.find('[') == std::string::npos) std::ranges::replace(line, ',', ' ');
  for (const std::string& each : base::split(line, ' ')) {
    if (!base::trim(each).empty()) keys.emplace_back(base::trim(each));
  }
  return keys;
}

void set_question(const SearchOptions& search,
                  const plan::Hardware& hardware,
                  base::DType number,
                  config::Config& config) {
  plan::set_number(config, number);
  config.runtime.world_size = search.gpus;
  config.runtime.device = hardware.device;
  config.train.global_batch_size = search.batch == 0 ? 8 * search.gpus : search.batch;
  if (search.sequence != 0) config.model.seq_length = search.sequence;
  config.dataset.seq_length = config.model.seq_length;
  if (hardware.device == config::DeviceKind::Cpu) {
    config.hardware.gpu.reset();
    config.runtime.backend = config::CommBackend::Threads;
    config.runtime.threads_per_rank = static_cast<std::int64_t>(hardware.sms);
    return;
  }
  config.runtime.backend = config::CommBackend::Nccl;
  config.hardware.gpu = config::WordCodec<config::Gpu>::parse(hardware.name);
  if (!config.hardware.gpu) config.hardware.device_name = hardware.name;
}

// With overlap = auto no order is pinned: every layout is priced in each order that the run would
// try.
void leave_order_open(config::Config& config, plan::PinnedKeys& pinned) {
  constexpr const char* kOrderKey = "comm_overlap.overlap_moe_expert_parallel_comm";
  if (!config.comm_overlap.overlap_moe_expert_parallel_comm.automatic) return;
  config.comm_overlap.overlap_moe_expert_parallel_comm = false;
  pinned.erase(kOrderKey);
  print_warning(
      text("{}=auto: layouts are priced plain, with overlap and with delayed weight "
           "gradients, and each says which it has",
           kOrderKey));
}

// The recipe's own run on the hardware of the question, with its batch and format unless the
// question uses the recipe's.
config::Config own_run(const config::Config& recipe,
                       const PlanOptions& options,
                       const plan::Hardware& hardware,
                       const std::vector<base::DType>& numbers) {
  config::Config config = words::with_words(recipe, key_words(options));
  const base::DType own = plan::number_of(config.model);
  const config::ModelConfig model = config.model;
  const bool is_asked = std::ranges::find(numbers, own) != numbers.end();
  set_question(options.search, hardware, is_asked ? own : numbers.front(), config);
  if (is_asked) {
    config.model.fp8 = model.fp8;
    config.model.fp8_recipe = model.fp8_recipe;
    config.model.fp4 = model.fp4;
  }
  return config;
}

// For several GPUs the default program is the file's own.
plan::Hardware hardware_asked(const PlanOptions& options, config::Config config) {
  config::Config here = config;
  here.hardware.gpu.reset();  // given with --gpu
  // One GPU may be this machine's; several are of a named kind.
  here.runtime.device =
      options.search.gpus == 1 ? config::DeviceKind::Cuda : config::DeviceKind::Cpu;
  const plan::Hardware hardware = chosen_hardware(options.gpu, here);
  if (options.search.gpus > 1) config.runtime.backend = config::CommBackend::Nccl;
  return plan::hardware_of_run(config, hardware, asked_program(options.program));
}

// Recipe layout for these GPUs, this number and this format, pre-training first; otherwise the
// recipe's own layout.
const RecipeRun& run_for(const std::vector<RecipeRun>& own,
                         const SearchOptions& search,
                         const plan::Hardware& hardware,
                         const std::vector<base::DType>& numbers) {
  const auto is_for = [&](const RecipeRun& run) {
    const auto& gpu = run.config.hardware.gpu;
    return gpu && config::word(*gpu) == hardware.name &&
           run.config.runtime.world_size == search.gpus &&
           std::ranges::find(numbers, plan::number_of(run.config.model)) != numbers.end();
  };
  const auto trains = [&](const RecipeRun& run) {
    return is_for(run) && run.name.find("pretrain") != std::string::npos;
  };
  if (is_for(own.front())) return own.front();
  for (const auto& found : {std::ranges::find_if(own, trains), std::ranges::find_if(own, is_for)}) {
    if (found != own.end()) return *found;
  }
  return own.front();
}

}  // namespace

std::optional<std::size_t> place_asked(const std::string& explain) {
  const auto place = base::parse_integer(explain);
  if (!place) return std::nullopt;
  if (*place < 1 || *place > kMostShown) {
    throw base::ConfigError(text("--explain={}: a place is from 1 to {}", explain, kMostShown));
  }
  return static_cast<std::size_t>(*place);
}

Question question_of(const PlanOptions& options) {
  if (options.run.words.empty() && !options.model) {
    throw base::ConfigError(
        "a model is wanted, as in weft plan deepseek_v3 --gpus=1024 --gpu=h100; --simulate RECIPE "
        "prices one run, --validate=FILE.csv holds the model against published ones");
  }
  if (options.search.gpus == 0) {
    throw base::ConfigError("--gpus=N is wanted: how many GPUs there are");
  }
  const PlanModel model =
      options.model ? *options.model : find_plan_model(options.run.words.front());
  for (const std::string& remark : model.remarks) print_warning(remark);
  const std::vector<std::string> keys = key_words(options);
  plan::PinnedKeys pinned = pinned_keys(keys);
  config::Config config = words::with_words(model.config, keys);
  leave_order_open(config, pinned);
  const plan::Routing routing = asked_routing(options.imbalance, config.model);
  const plan::Hardware hardware = hardware_asked(options, config);
  if (pinned.contains("runtime.threads_per_rank")) require_threads(config, hardware);
  std::vector<base::DType> numbers =
      numbers_asked(options.search.precision, config.model, hardware);
  set_question(options.search, hardware, numbers.front(), config);
  std::optional<OwnRun> own;
  if (!model.own.empty()) {
    const RecipeRun& run = run_for(model.own, options.search, hardware, numbers);
    own = OwnRun{.name = run.name,
                 .config = own_run(run.config, options, hardware, numbers),
                 .is_line = run.is_line};
  }
  if (numbers.size() == 1) numbers.clear();
  return {.model = model.name,
          .own = std::move(own),
          .length = options.search.sequence == 0 ? model.length : "",
          .ask = {.start = std::move(config),
                  .pinned = std::move(pinned),
                  .hardware = hardware,
                  .routing = routing,
                  .numbers = std::move(numbers),
                  .is_safe = options.search.is_safe,
                  .counter = measure::count_step}};
}

}  // namespace weft::cli
