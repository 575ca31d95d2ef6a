// Published tables that came with the program, and models by the names that tables give them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/published/measured_runs.h"
#include "weft/plan/published/published.h"

namespace weft::cli {

// Models of the recipes, each read once, without a layout.
class ModelShelf {
 public:
  const config::Config& of(const std::string& written);

 private:
  std::map<std::string, config::Config> models_;
};

// Hardware of the folder, by GPU.
plan::HardwareTable known_hardware_table();

// `published` beside the recipes where the program is installed; in a source tree tests/golden.
std::filesystem::path published_folder();

// The runs of the tables there; nullptr where there is no table.
std::shared_ptr<plan::MeasuredRuns> measured_runs();

}  // namespace weft::cli
