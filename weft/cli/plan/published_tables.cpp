#include "weft/cli/plan/published_tables.h"

#include "weft/base/files/file.h"
#include "weft/cli/arguments.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/plan/plan_model.h"
#include "weft/plan/published/validation.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTables[] = {"published_throughput.csv",
                                        "published_others.csv",
                                        "published_pairs.csv"};

}  // namespace

const config::Config& ModelShelf::of(const std::string& written) {
  const auto found = models_.find(written);
  if (found != models_.end()) return found->second;
  return models_.emplace(written, named_model(written).config).first->second;
}

plan::HardwareTable known_hardware_table() {
  plan::HardwareTable table;
  const fs::path folder = hardware_folder();
  for (const std::string& name : plan::known_hardware(folder)) {
    table.emplace(name, plan::find_hardware(folder, name));
  }
  return table;
}

fs::path published_folder() {
  const fs::path beside = recipes_folder().parent_path();
  const fs::path installed = beside / "published";
  std::error_code ignored;
  return fs::is_directory(installed, ignored) ? installed : beside / "tests" / "golden";
}

std::shared_ptr<plan::MeasuredRuns> measured_runs() {
  ModelShelf shelf;
  std::vector<plan::PublishedTable> tables;
  for (const std::string_view name : kTables) {
    const fs::path file = published_folder() / name;
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored)) continue;
    tables.push_back(
        plan::parse_published(base::read_text(file), file.string(), [&](const std::string& model) {
          return shelf.of(model);
        }));
  }
  if (tables.empty()) return nullptr;
  return std::make_shared<plan::MeasuredRuns>(std::move(tables), known_hardware_table());
}

}  // namespace weft::cli
