// Trace files in the folder of a run.
#pragma once

#include <filesystem>
#include <span>

#include "weft/trace/exposure/exposure.h"

namespace weft::train {

// Writes trace.json with all ranks on one time line; returns its path.
std::filesystem::path write_trace(const std::filesystem::path& run_dir,
                                  std::span<const trace::Timeline> timelines);
// Writes trace.rank<N>.json of one rank, for ranks with unsynchronized clocks.
std::filesystem::path write_own_trace(const std::filesystem::path& run_dir,
                                      const trace::Timeline& timeline);

// Writes exposure.json of all ranks; returns its content.
trace::Exposure write_exposure(const std::filesystem::path& run_dir,
                               std::span<const trace::Timeline> timelines,
                               trace::Clocks clocks);

}  // namespace weft::train
