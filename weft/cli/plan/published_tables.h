// Published tables shipped with the program, and models by their names there.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/published/measured_runs.h"
#include "weft/plan/published/published.h"
#include "weft/plan/published/validation.h"

namespace weft::cli {

// Models of the recipes without a layout, each read once.
class ModelShelf {
 public:
  const config::Config& of(const std::string& written);

 private:
  std::map<std::string, config::Config> models_;
};

// Hardware of the folder by GPU.
plan::HardwareTable known_hardware_table();

// Folder of tables: `published` beside the recipes of an installed program; tests/golden in a
// source tree.
std::filesystem::path published_folder();

// Runs of these tables; nullptr: no table.
std::shared_ptr<plan::MeasuredRuns> measured_runs();

}  // namespace weft::cli
