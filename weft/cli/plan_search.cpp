// weft plan MODEL: layouts that fit, priced and ranked.
#include <algorithm>
#include <atomic>
#include <optional>

#include "weft/base/cores.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/hardware_folder.h"
#include "weft/cli/interrupt.h"
#include "weft/cli/number_range.h"
#include "weft/cli/output.h"
#include "weft/cli/plan_model.h"
#include "weft/cli/plan_modes.h"
#include "weft/cli/progress.h"
#include "weft/config/codec.h"
#include "weft/measure/counted_step.h"
#include "weft/plan/search_report.h"
#include "weft/plan/workload.h"
#include "weft/words/resolution.h"
#include "weft/words/words.h"

namespace weft::cli {
namespace {

using base::text;

// "bf16", several of them, or all that the GPU has: fp32 is not looked for where tensor cores are
// many times faster in all others.
std::vector<plan::Number> numbers_asked(const std::string& asked_for,
                                        const config::ModelConfig& model,
                                        const plan::Hardware& hardware) {
  const bool is_gpu = hardware.device == config::DeviceKind::Cuda;
  const plan::Number usual = is_gpu ? plan::Number::Bf16 : plan::number_of(model);
  const std::string written = asked_for.empty() ? std::string(word(usual)) : asked_for;
  std::vector<plan::Number> known, asked;
  std::vector<std::string> has;
  for (int i = 0; i < plan::kNumbers; ++i) {
    const auto number = static_cast<plan::Number>(i);
    if (hardware.peak(number) <= 0) continue;
    known.push_back(number);
    has.emplace_back(word(number));
  }
  if (written == "all") {
    if (is_gpu) std::erase(known, plan::Number::Fp32);
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
    const plan::Number number = known[static_cast<std::size_t>(found - has.begin())];
    if (std::ranges::find(asked, number) == asked.end()) asked.push_back(number);
  }
  return asked;
}

// Keys that a plan says by its own options, so that one question has one answer.
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

// Keys that the words choose. Flags with effects of their own are for runs.
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

// Each of them is simulated.
constexpr std::int64_t kMostShown = 1000;

std::optional<std::size_t> place_asked(const std::string& explain) {
  const auto place = base::parse_integer(explain);
  if (!place) return std::nullopt;
  if (*place < 1 || *place > kMostShown) {
    throw base::ConfigError(text("--explain={}: a place is from 1 to {}", explain, kMostShown));
  }
  return static_cast<std::size_t>(*place);
}

// The words after MODEL, and those of --explain where it has keys.
std::vector<std::string> key_words(const PlanOptions& options) {
  const std::vector<std::string>& words = options.run.words;
  std::vector<std::string> keys(words.begin() + 1, words.end());
  const std::string& explain = options.search.explain;
  if (explain.empty() || place_asked(explain)) return keys;
  std::string line = explain;
  if (line.find('[') == std::string::npos) std::ranges::replace(line, ',', ' ');
  for (const std::string& each : base::split(line, ' ')) {
    if (!base::trim(each).empty()) keys.emplace_back(base::trim(each));
  }
  return keys;
}

struct Question {
  std::string model;
  plan::PlanAsk ask;
};

void set_question(const SearchOptions& search,
                  const plan::Hardware& hardware,
                  plan::Number number,
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

// overlap = auto keeps no order: every layout is priced in each of those that the run would try.
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

Question question_of(const PlanOptions& options) {
  if (options.run.words.empty()) {
    throw base::ConfigError(
        "a model is wanted, as in weft plan deepseek_v3 --gpus=1024 --gpu=h100; --simulate RECIPE "
        "prices one run, --validate=FILE.csv holds the model against published ones");
  }
  if (options.search.gpus == 0) {
    throw base::ConfigError("--gpus=N is wanted: how many GPUs there are");
  }
  PlanModel model = find_plan_model(options.run.words.front());
  const std::vector<std::string> keys = key_words(options);
  plan::PinnedKeys pinned = pinned_keys(keys);
  config::Config config = words::with_words(model.config, keys);
  leave_order_open(config, pinned);
  const plan::Routing routing = asked_routing(options.imbalance, config.model);
  const plan::Hardware hardware = chosen_hardware(options.gpu, {});
  if (pinned.contains("runtime.threads_per_rank")) require_threads(config, hardware);
  std::vector<plan::Number> numbers =
      numbers_asked(options.search.precision, config.model, hardware);
  set_question(options.search, hardware, numbers.front(), config);
  if (numbers.size() == 1) numbers.clear();
  return {.model = model.name,
          .ask = {.start = std::move(config),
                  .pinned = std::move(pinned),
                  .hardware = hardware,
                  .routing = routing,
                  .numbers = std::move(numbers),
                  .counter = measure::count_step}};
}

std::vector<plan::Hardware> all_hardware() {
  std::vector<plan::Hardware> all;
  for (const std::string& name : plan::known_hardware(hardware_folder())) {
    all.push_back(plan::find_hardware(hardware_folder(), name));
  }
  return all;
}

plan::PlanReport report_of(const Question& question,
                           const plan::LayoutSpace& space,
                           std::size_t top,
                           const std::atomic<bool>& stop) {
  ProgressLine line;
  const plan::SearchWatch watch{
      .show =
          [&](std::string_view what, std::int64_t done, std::int64_t all) {
            const double share = static_cast<double>(done) / static_cast<double>(all);
            line.show(text("{} {} {} of {}", what, bar(share, 30), done, all));
          },
      .stop = &stop};
  const int threads = static_cast<int>(base::usable_cores().size());
  plan::PlanReport report{.model = question.model,
                          .top = top,
                          .search = plan::search_layouts(space, top, threads, watch)};
  if (report.search.ranked.empty()) {
    if (!report.search.nearest) return report;
    line.show("what would make it fit");
    report.ways = plan::ways_to_fit(question.ask, all_hardware());
    return report;
  }
  line.show("knobs and verdicts");
  report.steps = plan::sensitivity(space, report.search.ranked.front().choice);
  report.verdicts = plan::plan_verdicts(space, report.search);
  return report;
}

// The layout that is explained and written: the best, or that of the place asked for.
const plan::PricedLayout& layout_asked(const plan::SearchResult& search, std::size_t place) {
  if (place <= search.ranked.size()) return search.ranked[place - 1];
  throw base::ConfigError(text("--explain={}: there are {} layouts", place, search.ranked.size()));
}

// What is no key of Megatron Bridge is told beside them.
void print_overrides(const config::Config& config) {
  const std::vector<std::string> words = plan::layout_overrides(config);
  print_text(text("{}\n", fmt::join(words, " \\\n")));
  const std::string gpu =
      config.hardware.gpu ? text(" hardware.gpu={}", config::word(*config.hardware.gpu)) : "";
  const std::int64_t queues = config.hardware.cuda_device_max_connections.value_or(1);
  ProgressLine().log(text(
      "For weft also: world={}{} hardware.cuda_device_max_connections={}; for Megatron Bridge, "
      "CUDA_DEVICE_MAX_CONNECTIONS={} in the environment.",
      config.runtime.world_size.value_or(1),
      gpu,
      queues,
      queues));
}

void write_recipe(const PlanOptions& options,
                  const Question& question,
                  const plan::LayoutSpace& space,
                  const plan::LayoutChoice& choice) {
  if (options.write.empty()) return;
  const std::string summary = text("{} on {} x {}: {}",
                                   question.model,
                                   options.search.gpus,
                                   space.hardware().name,
                                   to_text(choice, space.writer()));
  base::write_whole(options.write, plan::recipe_yaml(space.writer().config_of(choice), summary));
}

int search_and_print(const PlanOptions& options, const std::atomic<bool>& stop) {
  const SearchOptions& search = options.search;
  const Question question = question_of(options);
  if (!options.write.empty()) base::require_writable(options.write);
  const plan::LayoutSpace space(question.ask);
  const std::size_t place = place_asked(search.explain).value_or(1);
  const std::size_t top = std::max(static_cast<std::size_t>(search.top), place);
  const plan::PlanReport report = report_of(question, space, top, stop);
  const Format format = options.run.format;
  if (report.search.ranked.empty()) {
    format == Format::Json ? print_json(to_json(report, space))
                           : print_text(to_text(report, space));
    return kFailed;
  }
  const plan::PricedLayout& chosen = layout_asked(report.search, place);
  write_recipe(options, question, space, chosen.choice);
  if (format == Format::Json) {
    base::Json json = to_json(report, space);
    json["explained"] = explain_json(space, chosen);
    print_json(json);
  } else if (search.overrides) {
    print_overrides(space.writer().config_of(chosen.choice));
  } else {
    print_text(search.explain.empty() ? to_text(report, space) : explain_text(space, chosen));
  }
  return kGood;
}

}  // namespace

// A search writes nothing until it is over: one that is interrupted leaves nothing behind.
int plan_search(const PlanOptions& options) {
  try {
    return search_and_print(
        options,
        catch_interrupts(Caught::ExceptSchedulers, std::nullopt, kEndingSearch));
  } catch (const plan::SearchStopped&) {
    return interrupted_code();
  }
}

std::vector<CLI::Option*> add_search_options(CLI::App& command, SearchOptions& options) {
  std::vector<CLI::Option*> all;
  const auto number = [&](const char* name, std::int64_t& value, const char* what, double most) {
    all.push_back(within(1, most, command.add_option(name, value, what)));
  };
  number("--gpus", options.gpus, "GPUs to plan for", 1e6);
  number("--gbs", options.batch, "sequences a step; default: 8 a GPU", 1e8);
  number("--seq", options.sequence, "tokens of a sequence; default: the model's", 1e7);
  number("--top", options.top, "how many of the best are shown", kMostShown);
  all.back()->capture_default_str();
  all.push_back(
      command
          .add_option("--precision",
                      options.precision,
                      "of products: bf16, fp32, fp8, mxfp8, nvfp4; several, as in bf16,fp8; or "
                      "all; default: bf16, on processor cores what the model is in")
          ->type_name("WORD"));
  all.push_back(
      command
          .add_option(
              "--explain",
              options.explain,
              "one layout in detail: its place in the ranking, or keys, as in \"pp=8 ep=64\"")
          ->type_name("N|KEYS"));
  all.push_back(command.add_flag("--overrides",
                                 options.overrides,
                                 "print the best layout as words for a command line of Megatron "
                                 "Bridge, or of weft"));
  return all;
}

}  // namespace weft::cli
