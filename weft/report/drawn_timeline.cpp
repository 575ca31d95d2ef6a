#include "weft/report/drawn_timeline.h"

#include <algorithm>
#include <array>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/trace/activity.h"
#include "weft/trace/exposure/waits.h"

namespace weft::report {
namespace {

using base::text;

constexpr std::size_t kMostDrawnSpans = 60'000;
constexpr std::size_t kMostDrawnLanes = 256;
constexpr std::size_t kLongestName = 200;

// Indices of repeated texts.
class Names {
 public:
  explicit Names(std::vector<std::string>& names) : names_(names) {}

  std::int32_t number(const std::string& name) {
    const auto [found, is_new] =
        numbers_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
    if (is_new) names_.push_back(name.substr(0, kLongestName));
    return found->second;
  }

 private:
  std::vector<std::string>& names_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

int last_traced_run(const std::vector<trace::Timeline>& timelines) {
  int last = 0;
  for (const trace::Timeline& timeline : timelines) {
    for (const trace::Span& span : timeline.spans) last = std::max(last, span.run);
  }
  return last;
}

std::int32_t kind_of(const trace::Span& node) {
  if (node.kind == trace::SpanKind::Host) return trace::kActivities;
  return static_cast<std::int32_t>(trace::activity_of(node));
}

void add_rank(const trace::Timeline& timeline,
              int run,
              const trace::Waits& waits,
              Names& names,
              DrawnTimeline& drawn) {
  std::map<std::pair<int, std::string>, std::vector<DrawnSpan>> lanes;
  for (const trace::Span& span : timeline.spans) {
    if (span.run != run || !trace::is_node(span)) continue;
    lanes[{trace::lane_position(span.lane), span.lane}].push_back(
        {.name = names.number(span.name),
         .kind = kind_of(span),
         .begin_ns = span.begin_ns,
         .end_ns = span.end_ns,
         .waited_ns = waits.waited_ns(timeline, span)});
  }
  for (auto& [lane, spans] : lanes) {
    drawn.lanes.push_back(
        {.group = text("rank {}", timeline.rank), .name = lane.second, .spans = std::move(spans)});
  }
}

void draw_ranks(const Evidence& evidence, Names& names, DrawnTimeline& drawn) {
  for (int i = 0; i < trace::kActivities; ++i) {
    const auto activity = static_cast<trace::Activity>(i);
    drawn.kinds.push_back({.name = std::string(trace::words_of(activity)),
                           .colour = std::string(trace::colour_of(activity))});
  }
  drawn.kinds.push_back({.name = "host", .colour = "#b8325f"});
  const int run = last_traced_run(evidence.timelines);
  const trace::Waits waits(evidence.timelines, evidence.clocks);
  std::size_t ranks = 0;
  for (const trace::Timeline& timeline : evidence.timelines) {
    if (drawn.lanes.size() >= kMostDrawnLanes) break;
    add_rank(timeline, run, waits, names, drawn);
    ++ranks;
  }
  drawn.note = text("The last traced step of {} of {}.",
                    ranks,
                    base::counted(std::ssize(evidence.timelines), "rank"));
}

void draw_devices(const trace::DeviceTraces& traces, Names& names, DrawnTimeline& drawn) {
  constexpr std::array<std::pair<trace::SpanKind, const char*>, 5> kKinds{
      {{trace::SpanKind::Gemm, "#08519c"},
       {trace::SpanKind::Attention, "#6baed6"},
       {trace::SpanKind::Memory, "#c8b37e"},
       {trace::SpanKind::Copy, "#1f9aa5"},
       {trace::SpanKind::Communication, "#2e9e5b"}}};
  std::map<trace::SpanKind, std::int32_t> numbers;
  for (const auto& [kind, colour] : kKinds) {
    numbers[kind] = static_cast<std::int32_t>(drawn.kinds.size());
    drawn.kinds.push_back({.name = std::string(trace::word(kind)), .colour = colour});
  }
  for (const trace::DeviceTrace& device : traces.devices) {
    std::map<std::int32_t, std::vector<DrawnSpan>> streams;
    for (const trace::Kernel& kernel : device.kernels) {
      streams[kernel.stream].push_back({.name = names.number(traces.names[base::at(kernel.name)]),
                                        .kind = numbers[kernel.kind],
                                        .begin_ns = kernel.begin_ns,
                                        .end_ns = kernel.end_ns});
    }
    for (auto& [stream, spans] : streams) {
      if (drawn.lanes.size() >= kMostDrawnLanes) break;
      drawn.lanes.push_back({.group = text("GPU {}", device.device),
                             .name = text("stream {}", stream),
                             .spans = std::move(spans)});
    }
  }
  drawn.note =
      text("All of the trace, {}; a lane is a stream.", base::counted(traces.steps, "step"));
}

// Shifts times to start at 0 and sorts each lane by begin.
void settle(DrawnTimeline& drawn) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (DrawnTimeline::Lane& lane : drawn.lanes) {
    std::ranges::sort(lane.spans, {}, [](const DrawnSpan& span) {
      return std::pair(span.begin_ns, span.end_ns);
    });
    if (!lane.spans.empty()) first = std::min(first, lane.spans.front().begin_ns);
  }
  for (DrawnTimeline::Lane& lane : drawn.lanes) {
    for (DrawnSpan& span : lane.spans) {
      span.begin_ns -= first;
      span.end_ns -= first;
      drawn.end_ns = std::max(drawn.end_ns, span.end_ns);
    }
  }
}

std::size_t spans_of(const DrawnTimeline& timeline) {
  std::size_t spans = 0;
  for (const DrawnTimeline::Lane& lane : timeline.lanes) spans += lane.spans.size();
  return spans;
}

enum class Join { SameKind, AnyKind };

// Joins spans and gaps shorter than `shortest_ns` with their neighbour. Among several kinds the
// kind of the longest span wins.
std::vector<DrawnSpan> joined(const std::vector<DrawnSpan>& spans,
                              std::int64_t shortest_ns,
                              Join join) {
  std::vector<DrawnSpan> kept;
  std::int64_t longest = 0;  // longest span in the last one
  for (const DrawnSpan& span : spans) {
    const std::int64_t length = span.end_ns - span.begin_ns;
    const bool joins = !kept.empty() && span.begin_ns - kept.back().end_ns < shortest_ns &&
                       span.end_ns - kept.back().begin_ns < 2 * shortest_ns &&
                       (join == Join::AnyKind || kept.back().kind == span.kind);
    if (!joins) {
      kept.push_back(span);
      longest = length;
      continue;
    }
    DrawnSpan& into = kept.back();
    into.end_ns = std::max(into.end_ns, span.end_ns);
    into.count += span.count;
    into.waited_ns += span.waited_ns;
    if (length <= longest) continue;
    longest = length;
    into.kind = span.kind;
    into.name = span.name;
  }
  return kept;
}

// Divisor of a step's length: shorter spans are invisible while the whole step is shown.
constexpr std::int64_t kUnseen = 2000;

// True if white text is more readable on it than dark text.
bool is_dark(const std::string& colour) {
  const auto part = [&](std::size_t at) { return std::stoi(colour.substr(at, 2), nullptr, 16); };
  return 299 * part(1) + 587 * part(3) + 114 * part(5) < 128'000;
}

}  // namespace

void thin_out(DrawnTimeline& timeline, std::size_t most) {
  const std::size_t before = spans_of(timeline);
  if (before <= most) return;
  const auto share = static_cast<std::int64_t>(4 * most);
  const auto join = [&](Join how, std::int64_t until_ns) {
    for (std::int64_t ns = std::max<std::int64_t>(1, timeline.end_ns / share);
         spans_of(timeline) > most && ns <= until_ns;
         ns *= 2) {
      for (DrawnTimeline::Lane& lane : timeline.lanes) lane.spans = joined(lane.spans, ns, how);
    }
  };
  join(Join::SameKind, timeline.end_ns / kUnseen);
  join(Join::AnyKind, 4 * timeline.end_ns);
  timeline.note += text(" Of {} spans {} are drawn: short neighbours stand together.",
                        before,
                        spans_of(timeline));
}

DrawnTimeline draw_timeline(const Evidence& evidence) {
  DrawnTimeline drawn;
  Names names(drawn.names);
  if (evidence.devices) {
    draw_devices(*evidence.devices, names, drawn);
  } else if (!evidence.timelines.empty()) {
    draw_ranks(evidence, names, drawn);
  }
  settle(drawn);
  thin_out(drawn, kMostDrawnSpans);
  return drawn;
}

base::Json to_json(const DrawnTimeline& timeline) {
  base::Json kinds = base::Json::array(), lanes = base::Json::array();
  for (const DrawnTimeline::Kind& kind : timeline.kinds) {
    kinds.push_back({{"name", kind.name}, {"colour", kind.colour}, {"dark", is_dark(kind.colour)}});
  }
  std::vector<std::int64_t> lane_of, begin, length, waited, name, kind, count;
  for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    lanes.push_back({{"group", timeline.lanes[lane].group}, {"name", timeline.lanes[lane].name}});
    for (const DrawnSpan& span : timeline.lanes[lane].spans) {
      lane_of.push_back(static_cast<std::int64_t>(lane));
      begin.push_back(span.begin_ns);
      length.push_back(span.end_ns - span.begin_ns);
      waited.push_back(span.waited_ns);
      name.push_back(span.name);
      kind.push_back(span.kind);
      count.push_back(span.count);
    }
  }
  return {{"end_ns", std::max<std::int64_t>(1, timeline.end_ns)},
          {"note", timeline.note},
          {"kinds", std::move(kinds)},
          {"names", timeline.names},
          {"lanes", std::move(lanes)},
          {"spans",
           {{"lane", lane_of},
            {"begin", begin},
            {"length", length},
            {"wait", waited},
            {"name", name},
            {"kind", kind},
            {"count", count}}}};
}

}  // namespace weft::report
