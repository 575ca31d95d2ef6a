// Memory sizes in GiB, as GPUs and drivers state them.
#pragma once

namespace weft::plan {

inline constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
inline constexpr double kMib = 1024.0 * 1024.0;

inline double in_gib(double bytes) { return bytes / kGib; }

}  // namespace weft::plan
