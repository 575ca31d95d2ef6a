// weft plan MODEL: layouts that fit, priced and ranked.
#include <algorithm>
#include <atomic>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/plan_kept.h"
#include "weft/cli/plan/plan_modes.h"
#include "weft/cli/plan/plan_next.h"
#include "weft/cli/plan/plan_question.h"
#include "weft/cli/plan/plan_searched.h"
#include "weft/cli/plan/published_tables.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/plan/search/layout_keys.h"
#include "weft/plan/search/search_report.h"

namespace weft::cli {
namespace {

using base::text;

// Kept search of the same question, or a new one, which is then kept.
plan::KeptSearch kept_or_searched(const PlanOptions& options,
                                  const Question& question,
                                  const plan::LayoutSpace& space,
                                  std::size_t top,
                                  const std::atomic<bool>& stop) {
  const std::vector<plan::Hardware> others = all_hardware();
  const KeptSearches searches(plan::question_text(question.ask, others));
  if (!options.search.is_fresh) {
    if (std::optional<plan::KeptSearch> kept = searches.find(top, &space)) return std::move(*kept);
  }
  plan::KeptSearch found = search_for(question, space, top, others, stop);
  searches.keep(found);
  return found;
}

plan::PlanReport report_of(const PlanOptions& options,
                           const Question& question,
                           const plan::LayoutSpace& space,
                           std::size_t top,
                           const std::atomic<bool>& stop) {
  plan::KeptSearch kept = kept_or_searched(options, question, space, top, stop);
  plan::PlanReport report{.model = question.model,
                          .length = question.length,
                          .top = top,
                          .search = std::move(kept.search),
                          .steps = std::move(kept.steps),
                          .verdicts = std::move(kept.verdicts),
                          .ways = std::move(kept.ways),
                          .next = next_commands(options)};
  if (question.own) {
    report.own = plan::own_layout(question.own->config, space);
    report.own->name = question.own->name;
    report.own->is_line = question.own->is_line;
  }
  // Published runs cover Megatron Bridge on GPUs only.
  if (space.hardware().device != config::DeviceKind::Cuda ||
      space.hardware().program != plan::Program::MegatronBridge) {
    return report;
  }
  if (std::shared_ptr<plan::MeasuredRuns> measured = measured_runs()) {
    report.trust_of = [measured, &space](const config::Config& config) {
      return measured->of(config, space.hardware());
    };
  }
  return report;
}

// Layout to explain and write: the best, or the one at the requested place.
const plan::PricedLayout& layout_asked(const plan::SearchResult& search, std::size_t place) {
  if (place <= search.ranked.size()) return search.ranked[place - 1];
  throw base::ConfigError(text("--explain={}: there are {} layouts", place, search.ranked.size()));
}

// Prints the words, and separately keys that Megatron Bridge lacks.
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
  if (config.optimizer.optimizer_cpu_offload) {
    print_warning(
        "the optimizer on the host is priced as Weft's own AdamW does it: published runs of "
        "Megatron Bridge with all of it there took four times as long as without; measure before "
        "you rely on it, or plan with --safe");
  }
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
  if (!options.write.empty()) base::require_result(options.write, options.overwrite);
  const plan::LayoutSpace space(question.ask);
  const std::size_t place = place_asked(search.explain).value_or(1);
  const std::size_t top = std::max(static_cast<std::size_t>(search.top), place);
  const plan::PlanReport report = report_of(options, question, space, top, stop);
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
    json["explained"] = explain_json(report, space, chosen);
    print_json(json);
  } else if (search.overrides) {
    print_overrides(space.writer().config_of(chosen.choice));
  } else {
    print_text(search.explain.empty() ? to_text(report, space)
                                      : explain_text(report, space, chosen));
  }
  return kGood;
}

}  // namespace

// Writes nothing before the search ends: an interrupted search leaves nothing behind.
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
  all.push_back(command.add_flag("--safe",
                                 options.is_safe,
                                 "only layouts with nothing on the host, without CUDA graphs and "
                                 "with 8 % of the memory free"));
  all.push_back(command.add_flag("--fresh",
                                 options.is_fresh,
                                 "search again, even where the search of this question was kept"));
  return all;
}

}  // namespace weft::cli
