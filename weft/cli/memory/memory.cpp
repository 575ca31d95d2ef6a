// weft memory: memory that a run needs on a GPU, and possible savings.
#include <iostream>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/memory/memory_picture.h"
#include "weft/cli/memory/memory_search.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/plan/program_option.h"
#include "weft/cli/run/picture_file.h"
#include "weft/cli/run/run_room.h"
#include "weft/cli/run/start_model.h"
#include "weft/cli/run/start_shapes.h"
#include "weft/cli/terminal/progress.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

struct MemoryOptions {
  RunArguments run;
  std::string svg;
  base::Overwrite overwrite = base::Overwrite::No;
  RanksShown ranks = RanksShown::Largest;
  CountWish::What savings = CountWish::What::WhatIsShort;
  std::string program;  // program to judge for; empty: Weft's memory, at the times of the usual one
};

constexpr const char* kMemory = "memory";

void draw(const MemoryReport& report, const words::Resolution& run, const std::string& file) {
  const std::string name = name_of_run(run, run.config);
  write_picture(file, to_svg(report, "weft memory: " + name), kMemory);
}

int run_memory(const MemoryOptions& options) {
  const words::Resolution run = resolve(options.run);
  print_findings(run);
  if (!options.svg.empty()) require_picture(options.svg, options.overwrite, kMemory);
  config::Config asked = with_start_shapes(run);
  name_card(asked);
  const rules::Verdict verdict = rules::validate_schedule(asked);
  for (const config::Finding& warning : verdict.warnings) print_warning(config::to_text(warning));
  const bool is_text = options.run.format == Format::Text;
  ProgressLine line;
  // JSON and pictures need every rank.
  const bool is_whole = !is_text || !options.svg.empty() || options.ranks == RanksShown::All;
  using What = CountWish::What;
  MemoryReport report = report_peaks(asked,
                                     judged_room(verdict.config),
                                     {.ranks = is_whole ? What::Everything : What::WhatIsShort,
                                      .savings = options.savings,
                                      .program = asked_program(options.program)},
                                     shown_on(line));
  line.clear();
  // Prints the known part first: counted savings take minutes.
  if (is_text) print_text(peaks_text(report, options.ranks));
  if (report.forecast.is_predicted()) {
    std::cout.flush();
    if (!options.svg.empty()) draw(report, run, options.svg);
    add_savings(asked, shown_on(line), report);
    line.clear();
  }
  is_text ? print_text(savings_text(report)) : print_json(to_json(report));
  if (!report.forecast.is_predicted()) return kFailed;
  return report.fits() || !derive::is_on_gpu(asked) ? kGood : kFailed;
}

}  // namespace

void add_memory(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "memory",
      "predict the memory of every pipeline rank, and price the savings that are not taken");
  auto options = std::make_shared<MemoryOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft memory qwen3_30b_a3b world=16 ep=8 --svg=memory.svg");
  command->footer(command->get_footer() +
                  "\nExit code: 0 where the run fits the GPU that hardware.* names, or none is "
                  "named; 1 where it does not fit it, or the memory of its machine "
                  "(hardware.host_memory_gb); 2 where it is not legal. Of a GPU's memory a part is "
                  "left for CUDA and its libraries: 4.7 GiB, of Blackwell 7.5.\n"
                  "A dry step counts the rank that needs most; savings of long steps are those of "
                  "the planner's formula.");
  add_overwrite(*command, options->overwrite);
  command->add_option("--svg", options->svg, "file for a picture of the memory over the step")
      ->type_name("FILE");
  add_program_option(*command, options->program)
      ->description(
          "whose memory and times: megatron (Megatron Bridge, by the planner's formula) or weft; "
          "default: the memory of Weft's engine, at the times of the program that weft plan "
          "prices");
  command->add_flag_callback(
      "--all",
      [options = options.get()] { options->ranks = RanksShown::All; },
      "what the peak of every pipeline rank is made of, not of the largest alone");
  command->add_flag_callback(
      "--count",
      [options = options.get()] { options->savings = CountWish::What::Everything; },
      "count every saving by a dry step, to the byte; minutes for the largest models");
  on_chosen(*command, chosen, std::move(options), run_memory);
}

}  // namespace weft::cli
