// Folder of one run: resolved config, metrics, trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "weft/base/files/line_file.h"
#include "weft/base/files/overwrite.h"
#include "weft/config/config.h"

namespace weft::train {

// SystemError, naming its purpose `what`, if the folder cannot be made or written.
void make_writable_folder(const std::filesystem::path& folder, const std::string& what);

// Makes <parent>/<name>-<time> as a new folder: two runs that start in the same second get two.
std::filesystem::path make_fresh_folder(const std::filesystem::path& parent,
                                        const std::string& name);

struct RunFolder {
  std::filesystem::path path;
  // metrics.jsonl, with the lines of earlier runs for the steps before. While it is open, no other
  // run gets the folder.
  base::LineFile metrics;
  std::optional<std::filesystem::path> kept = {};  // lines moved out of it; nullopt: none
};

// Moves metrics lines after the first `step` steps to metrics.1.jsonl, or the next free number.
// Returns that path; nullopt: there were none.
std::optional<std::filesystem::path> drop_later_steps(RunFolder& folder, std::int64_t step);

// Reason why this run must not write into config.runtime.run_dir: it has metrics or other files of
// a run that this one, which begins after `step`, does not resume. Empty: the folder is free, or
// the run resumes there, or the same job started there and has saved nothing yet.
std::string run_folder_complaint(const config::Config& config, std::int64_t step);

// Makes config.runtime.run_dir, or runs/<name>-<time>, with config.yaml in it. `step`: steps done
// before a resumed run. ConfigError with run_folder_complaint() unless the files may be
// overwritten. Metrics that this run does not go on from are kept as drop_later_steps() says,
// unless the run is replaced. SystemError if another run uses the folder, or if a folder has the
// name of a file to write.
RunFolder make_run_folder(const config::Config& config,
                          const std::string& name,
                          std::int64_t step = 0,
                          base::Overwrite overwrite = base::Overwrite::No);

}  // namespace weft::train
