// weft grid: every process group of a layout.
#include "weft/grid/grid.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/layout_text.h"
#include "weft/derive/derived.h"

namespace weft::cli {
namespace {

constexpr int kMostPrinted = 65536;

// "{0-3,8-11}": shortens runs of consecutive ranks.
std::string group_text(const std::vector<int>& ranks) {
  std::string all = "{";
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (first > 0) all += ',';
    all += base::text("{}", ranks[first]);
    if (last > first) all += base::text("{}{}", last == first + 1 ? ',' : '-', ranks[last]);
    first = last + 1;
  }
  return all + "}";
}

void show_text(const grid::Grid& grid) {
  print_text(base::text("world {}\ndense view   tp {} cp {} dp {} pp {}\n",
                        grid.world(),
                        grid.tp(),
                        grid.cp(),
                        grid.dp(),
                        grid.pp()));
  print_text(base::text("expert view  etp {} ep {} edp {} pp {}\n\n",
                        grid.etp(),
                        grid.ep(),
                        grid.edp(),
                        grid.pp()));
  for (const grid::GroupKind kind : grid::kGroupKinds) {
    std::string line = base::text("{:<19}", grid::word(kind));
    for (const std::vector<int>& group : grid.groups(kind)) line += ' ' + group_text(group);
    print_text(line + '\n');
  }
  print_text(base::text("\n{}; a group is the ranks that differ in its axes alone\n", kAxisLegend));
}

void show_json(const grid::Grid& grid) {
  base::Json groups = base::Json::object();
  for (const grid::GroupKind kind : grid::kGroupKinds) {
    groups[std::string(grid::word(kind))] = grid.groups(kind);
  }
  print_json(base::Json{
      {"world", grid.world()},
      {"dense", {{"tp", grid.tp()}, {"cp", grid.cp()}, {"dp", grid.dp()}, {"pp", grid.pp()}}},
      {"expert", {{"etp", grid.etp()}, {"ep", grid.ep()}, {"edp", grid.edp()}, {"pp", grid.pp()}}},
      {"groups", std::move(groups)}});
}

int run_grid(const RunArguments& arguments) {
  const words::Resolution run = resolve(arguments);
  print_findings(run);
  const grid::Grid grid(derive::layout_of(run.config));
  if (grid.world() > kMostPrinted) {
    throw base::ConfigError(
        base::text("world = {}: at most {} ranks are printed", grid.world(), kMostPrinted));
  }
  switch (arguments.format) {
    case Format::Text:
      show_text(grid);
      break;
    case Format::Json:
      show_json(grid);
      break;
  }
  return kGood;
}

}  // namespace

void add_grid(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand("grid",
                                             "print every process group of a layout (of the rest "
                                             "of a config only keys and types are judged; "
                                             "weft check judges all)");
  auto arguments = std::make_shared<RunArguments>();
  add_run_arguments(
      *command,
      *arguments,
      "weft grid world=16 model.tensor_model_parallel_size=2 model.expert_model_parallel_size=4");
  on_chosen(*command, chosen, std::move(arguments), run_grid);
}

}  // namespace weft::cli
