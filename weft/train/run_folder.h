// The folder of one run: resolved config, metrics, trace.
#pragma once

#include <filesystem>
#include <string>

#include "weft/config/config.h"

namespace weft::train {

// Makes config.runtime.run_dir, or runs/<name>-<time>, with config.yaml in it. A given folder may
// exist: its files are replaced.
std::filesystem::path make_run_folder(const config::Config& config, const std::string& name);

}  // namespace weft::train
