#include "weft/trace/run_spans.h"

namespace weft::trace {

std::map<int, RunSpans> spans_by_run(const Timeline& timeline) {
  std::map<int, RunSpans> runs;
  for (const Span& span : timeline.spans) runs[span.run].push_back(&span);
  return runs;
}

}  // namespace weft::trace
