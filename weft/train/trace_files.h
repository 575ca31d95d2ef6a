// The files of a traced run in its folder.
#pragma once

#include <filesystem>
#include <span>

#include "weft/config/config.h"
#include "weft/trace/exposure.h"

namespace weft::train {

// One file a process: all ranks where they are threads, this rank's alone under a launcher. Returns
// its path.
std::filesystem::path write_trace(const std::filesystem::path& run_dir,
                                  std::span<const trace::Timeline> timelines,
                                  config::CommBackend backend);

// exposure.json, of all ranks; returns what is in it.
trace::Exposure write_exposure(const std::filesystem::path& run_dir,
                               std::span<const trace::Timeline> timelines,
                               trace::Clocks clocks);

}  // namespace weft::train
