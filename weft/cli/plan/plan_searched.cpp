#include "weft/cli/plan/plan_searched.h"

#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/terminal/progress.h"
#include "weft/plan/search/plan_verdicts.h"
#include "weft/plan/search/search_report.h"

namespace weft::cli {

using base::text;

std::vector<plan::Hardware> all_hardware() {
  std::vector<plan::Hardware> all;
  for (const std::string& name : plan::known_hardware(hardware_folder())) {
    all.push_back(plan::find_hardware(hardware_folder(), name));
  }
  return all;
}

plan::KeptSearch search_for(const Question& question,
                            const plan::LayoutSpace& space,
                            std::size_t top,
                            const std::vector<plan::Hardware>& others,
                            const std::atomic<bool>& stop) {
  ProgressLine line;
  const plan::SearchWatch watch{
      .show =
          [&](std::string_view what, std::int64_t done, std::int64_t all) {
            const double share = static_cast<double>(done) / static_cast<double>(all);
            line.show(text("{} {} {} of {}", what, bar(share, 30), done, all));
          },
      .stop = &stop};
  const int threads = static_cast<int>(base::usable_cores().size());
  plan::KeptSearch kept{.top = top, .search = plan::search_layouts(space, top, threads, watch)};
  if (kept.search.ranked.empty()) {
    if (!kept.search.nearest) return kept;
    line.show("what would make it fit");
    kept.ways = plan::ways_to_fit(question.ask, others);
    return kept;
  }
  line.show("knobs and verdicts");
  kept.steps = plan::sensitivity(space, kept.search.ranked.front().choice);
  kept.verdicts = plan::plan_verdicts(space, kept.search);
  return kept;
}

}  // namespace weft::cli
