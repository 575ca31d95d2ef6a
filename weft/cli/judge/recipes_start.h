// weft recipes --start: starts each recipe (measure/runs/start.h).
#pragma once

#include <string>
#include <vector>

#include "weft/cli/output.h"
#include "weft/config/config.h"

namespace weft::cli {

// Input for `weft train`.
struct Runnable {
  std::string name;
  std::string summary;
  config::Config config;
};

// Tries each and prints the result. Returns the exit code: failure if a recipe with all parts does
// not start.
int start_recipes(const std::vector<Runnable>& runnables, Format format);

}  // namespace weft::cli
