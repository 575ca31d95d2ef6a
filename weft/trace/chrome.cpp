#include "weft/trace/chrome.h"

#include <algorithm>
#include <limits>
#include <map>

#include "weft/base/json.h"

namespace weft::trace {
namespace {

using base::Json;

Json metadata(const char* what, int pid, int tid, Json args) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", std::move(args)}};
}

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000.0; }

}  // namespace

void write_chrome(std::span<const Timeline> timelines, const base::Append& append) {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  for (const Timeline& timeline : timelines) {
    for (const Span& span : timeline.spans) start = std::min(start, span.begin_ns);
  }
  append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  bool first = true;
  const auto event = [&](const Json& json) {
    append(first ? "" : ",\n");
    append(json.dump(-1, ' ', false, Json::error_handler_t::replace));
    first = false;
  };
  for (const Timeline& timeline : timelines) {
    std::map<std::string, int> tracks;
    event(metadata("process_name",
                   timeline.rank,
                   0,
                   {{"name", timeline.label + " rank " + std::to_string(timeline.rank)}}));
    event(metadata("process_sort_index", timeline.rank, 0, {{"sort_index", timeline.rank}}));
    for (const Span& span : timeline.spans) {
      const auto [track, is_new] = tracks.try_emplace(span.lane, static_cast<int>(tracks.size()));
      if (is_new)
        event(metadata("thread_name", timeline.rank, track->second, {{"name", span.lane}}));
      event({{"name", span.name},
             {"cat", std::string(word(span.kind))},
             {"ph", "X"},
             {"pid", timeline.rank},
             {"tid", track->second},
             {"ts", microseconds(span.begin_ns - start)},
             {"dur", microseconds(span.end_ns - span.begin_ns)},
             {"args", {{"node", span.node}, {"run", span.run}}}});
    }
  }
  append("\n]}\n");
}

}  // namespace weft::trace
