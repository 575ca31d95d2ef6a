#include "weft/train/trace_files.h"

#include "weft/base/file.h"
#include "weft/base/text.h"
#include "weft/trace/chrome.h"

namespace weft::train {

namespace fs = std::filesystem;

fs::path write_trace(const fs::path& run_dir,
                     std::span<const trace::Timeline> timelines,
                     config::CommBackend backend) {
  const std::string name = backend == config::CommBackend::Mpi
                               ? base::text("trace.rank{}.json", timelines.front().rank)
                               : std::string("trace.json");
  base::write_whole(run_dir / name,
                    [&](const base::Append& append) { trace::write_chrome(timelines, append); });
  return run_dir / name;
}

trace::Exposure write_exposure(const fs::path& run_dir,
                               std::span<const trace::Timeline> timelines,
                               trace::Clocks clocks) {
  trace::Exposure exposure = trace::analyse(timelines, clocks);
  base::write_whole(run_dir / "exposure.json", trace::to_json(exposure).dump(2) + "\n");
  return exposure;
}

}  // namespace weft::train
