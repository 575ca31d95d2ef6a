// weft recipes --start: which recipes start (measure/start.h).
#pragma once

#include <string>
#include <vector>

#include "weft/cli/output.h"
#include "weft/config/config.h"

namespace weft::cli {

// One thing that `weft train` can be given.
struct Runnable {
  std::string name;
  std::string summary;
  config::Config config;
};

// Tries them one after another and prints what came of each. The exit code: a recipe that has every
// part and does not start is a failure.
int start_recipes(const std::vector<Runnable>& runnables, Format format);

}  // namespace weft::cli
