#include "weft/train/log/trace_files.h"

#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/trace/chrome/chrome.h"

namespace weft::train {

namespace fs = std::filesystem;

namespace {

fs::path write_file(const fs::path& file, std::span<const trace::Timeline> timelines) {
  base::write_whole(file,
                    [&](const base::Append& append) { trace::write_chrome(timelines, append); });
  return file;
}

}  // namespace

fs::path write_trace(const fs::path& run_dir, std::span<const trace::Timeline> timelines) {
  return write_file(run_dir / "trace.json", timelines);
}

fs::path write_own_trace(const fs::path& run_dir, const trace::Timeline& timeline) {
  return write_file(run_dir / base::text("trace.rank{}.json", timeline.rank), {&timeline, 1});
}

trace::Exposure write_exposure(const fs::path& run_dir,
                               std::span<const trace::Timeline> timelines,
                               trace::Clocks clocks) {
  trace::Exposure exposure = trace::analyse(timelines, clocks);
  base::write_whole(run_dir / "exposure.json", trace::to_json(exposure).dump(2) + "\n");
  return exposure;
}

}  // namespace weft::train
