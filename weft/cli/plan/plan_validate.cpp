// weft plan --validate: published runs against their prices.
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/plan/plan_modes.h"
#include "weft/cli/plan/published_tables.h"
#include "weft/plan/hardware/fit.h"
#include "weft/plan/published/published.h"
#include "weft/plan/published/validation.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestTable = 16u << 20;

void write_fitted(const fs::path& folder, const plan::Fit& fit, base::Overwrite overwrite) {
  fs::create_directories(folder);
  for (const auto& [name, hardware] : fit.hardware) {
    base::require_free(folder / (name + ".yaml"), overwrite);
  }
  for (const auto& [name, hardware] : fit.hardware) {
    const std::string file = name + ".yaml";
    base::write_whole(folder / file,
                      plan::with_calibrated(base::read_text(hardware_folder() / file), hardware));
  }
}

base::Json to_json(const plan::Fit& fit) {
  base::Json numbers = base::Json::array();
  for (const plan::FittedNumber& one : fit.numbers) {
    numbers.push_back({{"key", one.key}, {"gpus", one.gpus}, {"value", one.value}});
  }
  return {{"rows", fit.rows}, {"numbers", numbers}};
}

}  // namespace

int plan_validate(const PlanOptions& options) {
  if (!options.run.words.empty()) {
    throw base::ConfigError(
        base::text("--validate takes no word '{}': the table says what to price",
                   base::shown(options.run.words.front())));
  }
  ModelShelf shelf;
  plan::PublishedTable table =
      plan::parse_published(base::read_text(options.validate, kLargestTable),
                            options.validate,
                            [&](const std::string& name) { return shelf.of(name); });
  if (!options.fit_models.empty()) table.fitted_models = options.fit_models;
  plan::HardwareTable hardware = known_hardware_table();
  std::optional<plan::Fit> fit;
  if (options.fit) {
    fit = plan::fit_hardware(table, hardware);
    if (fit->rows == 0) {
      throw base::ConfigError(
          base::text("{}: no row to fit to: name models of the table, as in "
                     "--fit-models=Qwen3_30B_a3B,LLAMA3_8B",
                     options.validate));
    }
    hardware = fit->hardware;
    if (!options.write.empty()) write_fitted(options.write, *fit, options.overwrite);
  }
  const plan::Validation validation = plan::validate(table, hardware);
  if (validation.rows.empty()) {
    std::vector<std::string> why = {base::text("{}: no row can be priced", options.validate)};
    why.insert(why.end(), validation.left_out.begin(), validation.left_out.end());
    throw base::ConfigError(std::move(why));
  }
  if (options.run.format == Format::Json) {
    base::Json json = plan::to_json(validation);
    if (fit) json["fit"] = to_json(*fit);
    print_json(json);
  } else {
    print_text((fit ? plan::to_text(*fit) : "") + plan::to_text(validation));
  }
  return kGood;
}

}  // namespace weft::cli
