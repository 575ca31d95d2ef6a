// The folder of one run: resolved config, metrics, trace.
#pragma once

#include <filesystem>
#include <string>

#include "weft/base/line_file.h"
#include "weft/base/overwrite.h"
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

// Why config.runtime.run_dir is not this run's to write into: it has metrics or other files of a
// run, and this one, which begins behind `step`, does not go on from there. Empty: it is free, or
// the run goes on, or the same job was started there before and has saved nothing yet.
std::string run_folder_complaint(const config::Config& config, std::int64_t step);

// `step`: the steps done before, of a run that goes on. Makes config.runtime.run_dir, or
// runs/<name>-<time>, with config.yaml in it. ConfigError with run_folder_complaint() unless the
// files of the run may be replaced; metrics of a job that is started again without a checkpoint are
// kept as metrics.1.jsonl and so on. SystemError where another run is using the folder, or where a
// file of the run could not be written because a folder has its name.
RunFolder make_run_folder(const config::Config& config,
                          const std::string& name,
                          std::int64_t step = 0,
                          base::Overwrite overwrite = base::Overwrite::No);

}  // namespace weft::train
