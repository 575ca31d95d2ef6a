// The files of a traced run in its folder.
#pragma once

#include <filesystem>
#include <span>

#include "weft/trace/exposure.h"

namespace weft::train {

// trace.json, of all ranks on one time line; returns its path.
std::filesystem::path write_trace(const std::filesystem::path& run_dir,
                                  std::span<const trace::Timeline> timelines);
// trace.rank<N>.json, of a rank alone: where the clocks of the ranks do not compare.
std::filesystem::path write_own_trace(const std::filesystem::path& run_dir,
                                      const trace::Timeline& timeline);

// exposure.json, of all ranks; returns what is in it.
trace::Exposure write_exposure(const std::filesystem::path& run_dir,
                               std::span<const trace::Timeline> timelines,
                               trace::Clocks clocks);

}  // namespace weft::train
