// The folder of one run: resolved config, metrics, trace.
#pragma once

#include <filesystem>
#include <string>

#include "weft/base/line_file.h"
#include "weft/config/config.h"

namespace weft::train {

// SystemError, naming `what` it is for, where the folder cannot be made or written into.
void make_writable_folder(const std::filesystem::path& folder, const std::string& what);

// Makes <parent>/<name>-<time>, a folder that was not there: two runs that start in one second do
// not share one.
std::filesystem::path make_fresh_folder(const std::filesystem::path& parent,
                                        const std::string& name);

struct RunFolder {
  std::filesystem::path path;
  // metrics.jsonl, with what earlier runs said of the steps this one goes on from. As long as it is
  // open no other run gets the folder.
  base::LineFile metrics;
};

// Leaves of its metrics what is said of the first `step` steps.
void drop_later_steps(RunFolder& folder, std::int64_t step);

// `step`: the steps done before, of a run that goes on. Makes config.runtime.run_dir, or
// runs/<name>-<time>, with config.yaml in it. A given folder may exist: its files are replaced.
// SystemError where another run is using it, or where a file of the run could not be written
// because a folder has its name.
RunFolder make_run_folder(const config::Config& config,
                          const std::string& name,
                          std::int64_t step = 0);

}  // namespace weft::train
