#include "weft/trace/chrome/chrome.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "weft/base/json.h"

namespace weft::trace {
namespace {

using base::Json;

// Writes events into the array of a trace.
class Writer {
 public:
  Writer(const base::Append& append, std::int64_t start_ns) : append_(append), start_(start_ns) {}

  void event(const Json& json) {
    append_(first_ ? "" : ",\n");
    append_(json.dump(-1, ' ', false, Json::error_handler_t::replace));
    first_ = false;
  }

  void metadata(const char* what, int pid, int tid, Json args) {
    event({{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", std::move(args)}});
  }

  double time(std::int64_t ns) const { return static_cast<double>(ns - start_) / 1000.0; }

 private:
  const base::Append& append_;
  std::int64_t start_;
  bool first_ = true;
};

// Track position of a span.
struct Place {
  const Span* span = nullptr;
  int pid = 0;
  int tid = 0;
};

// Track numbers of a rank's lanes, in display order.
std::map<std::string, int> tracks_of(const Timeline& timeline) {
  std::set<std::pair<int, std::string>> lanes;
  for (const Span& span : timeline.spans) lanes.emplace(lane_position(span.lane), span.lane);
  std::map<std::string, int> tracks;
  for (const auto& [position, lane] : lanes) tracks.emplace(lane, static_cast<int>(tracks.size()));
  return tracks;
}

Json args_of(const Span& span) {
  Json args{{"node", span.node}, {"run", span.run}};
  if (span.layer >= 0) args["layer"] = span.layer;
  if (span.micro_batch >= 0) args["micro_batch"] = span.micro_batch;
  if (span.bytes > 0) args["bytes"] = span.bytes;
  if (span.rows > 0) args["rows"] = span.rows;
  if (is_node(span) && !communication_kind(span.lane).empty()) args["coverable"] = span.coverable;
  // chrome_read.h restores from these what an analysis reads.
  if (!span.after.empty()) args["after"] = span.after;
  if (!span.operation.empty()) args["operation"] = span.operation;
  if (!span.members.empty()) args["members"] = span.members;
  return args;
}

// A viewer binds the end of an arrow to the slice that is open at that time: both ends lie inside
// their slices. A slice's last nanosecond is the last inside it.
std::int64_t last_moment(const Span& span) { return std::max(span.begin_ns, span.end_ns - 1); }

// Arrows between slices. Their numbers contain the first timeline's rank, so that traces of several
// processes can be merged.
class Flows {
 public:
  Flows(Writer& writer, int first_rank)
      : writer_(writer), id_((std::int64_t{first_rank} << 32) + 1) {}

  void arrow(const char* name,
             const Place& from,
             std::int64_t from_ns,
             const Place& to,
             std::int64_t to_ns) {
    // Viewers do not show arrows back in time, which occur between ranks with different clocks.
    if (from_ns > to_ns) return;
    end("s", name, from, from_ns);
    end("f", name, to, to_ns);
    ++id_;
  }

 private:
  void end(const char* phase, const char* name, const Place& place, std::int64_t ns) {
    Json event{{"name", name},
               {"cat", "flow"},
               {"ph", phase},
               {"id", id_},
               {"pid", place.pid},
               {"tid", place.tid},
               {"ts", writer_.time(ns)}};
    if (*phase == 'f') event["bp"] = "e";
    writer_.event(event);
  }

  Writer& writer_;
  std::int64_t id_;
};

// Writes a line across a rank's tracks where each traced step begins.
void write_steps(const Timeline& timeline, Writer& writer) {
  std::map<int, std::int64_t> begins;
  for (const Span& span : timeline.spans) {
    const auto [begin, is_new] = begins.emplace(span.run, span.begin_ns);
    if (!is_new) begin->second = std::min(begin->second, span.begin_ns);
  }
  for (const auto& [run, begin_ns] : begins) {
    writer.event({{"name", "traced step " + std::to_string(run + 1)},
                  {"cat", "step"},
                  {"ph", "i"},
                  {"s", "p"},
                  {"pid", timeline.rank},
                  {"tid", 0},
                  {"ts", writer.time(begin_ns)},
                  {"args", {{"run", run}}}});
  }
}

std::vector<Place> write_rank(const Timeline& timeline, Writer& writer) {
  const int pid = timeline.rank;
  writer.metadata("process_name",
                  pid,
                  0,
                  {{"name", timeline.label + " rank " + std::to_string(timeline.rank)}});
  writer.metadata("process_sort_index", pid, 0, {{"sort_index", pid}});
  write_steps(timeline, writer);
  const std::map<std::string, int> tracks = tracks_of(timeline);
  for (const auto& [lane, tid] : tracks) {
    writer.metadata("thread_name", pid, tid, {{"name", lane}});
    writer.metadata("thread_sort_index", pid, tid, {{"sort_index", tid}});
  }
  std::vector<Place> nodes;
  for (const Span& span : timeline.spans) {
    const int tid = tracks.at(span.lane);
    writer.event({{"name", span.name},
                  {"cat", std::string(word(span.kind))},
                  {"ph", "X"},
                  {"pid", pid},
                  {"tid", tid},
                  {"ts", writer.time(span.begin_ns)},
                  {"dur", static_cast<double>(span.end_ns - span.begin_ns) / 1000.0},
                  {"args", args_of(span)}});
    if (is_node(span)) nodes.push_back({&span, pid, tid});
  }
  return nodes;
}

// Writes arrows from awaited to waiting nodes of one rank.
void write_waits(const std::vector<Place>& nodes, Flows& flows) {
  std::map<std::pair<int, std::string_view>, const Place*> by_name;
  for (const Place& node : nodes) {
    const Place*& known = by_name[{node.span->run, node.span->name}];
    // A host node may have left work of the same name on another lane; the host's span counts.
    if (known == nullptr || node.span->kind == SpanKind::Host) known = &node;
  }
  for (const Place& node : nodes) {
    for (const std::string& name : node.span->after) {
      const auto found = by_name.find({node.span->run, name});
      if (found == by_name.end()) continue;
      // A host span includes its wait, and ends after the node it waited for.
      const bool waits_inside = node.span->kind == SpanKind::Host;
      flows.arrow("wait",
                  *found->second,
                  last_moment(*found->second->span),
                  node,
                  waits_inside ? last_moment(*node.span) : node.span->begin_ns);
    }
  }
}

// Writes arrows from sends to receives of other ranks. A receive's name differs from its operation.
void write_messages(const std::vector<Place>& nodes, Flows& flows) {
  using Key = std::tuple<int, std::string_view, std::vector<int>>;
  std::map<Key, const Place*> sends;
  const auto key = [](const Span& span) { return Key(span.run, span.operation, span.members); };
  for (const Place& node : nodes) {
    if (node.span->name == node.span->operation) sends.emplace(key(*node.span), &node);
  }
  for (const Place& node : nodes) {
    if (node.span->operation.empty() || node.span->name == node.span->operation) continue;
    const auto send = sends.find(key(*node.span));
    if (send == sends.end()) continue;
    flows.arrow("message",
                *send->second,
                send->second->span->begin_ns,
                node,
                last_moment(*node.span));
  }
}

void write_all(std::span<const Timeline> timelines,
               std::string_view head,
               const base::Append& append) {
  append("{\"displayTimeUnit\":\"ms\",");
  append(head);
  append("\"traceEvents\":[\n");
  Writer writer(append, shown_time(timelines).begin);
  Flows flows(writer, timelines.empty() ? 0 : timelines.front().rank);
  std::vector<Place> all;
  for (const Timeline& timeline : timelines) {
    const std::vector<Place> nodes = write_rank(timeline, writer);
    write_waits(nodes, flows);
    all.insert(all.end(), nodes.begin(), nodes.end());
  }
  write_messages(all, flows);
  append("\n]}\n");
}

}  // namespace

void write_chrome(std::span<const Timeline> timelines, const base::Append& append) {
  write_all(timelines, "", append);
}

void write_simulated_chrome(std::span<const Timeline> timelines,
                            std::string_view config,
                            const Shortened& shortened,
                            const base::Append& append) {
  const Interval shown = shown_time(timelines);
  const auto in_ms = [](std::int64_t ns) { return static_cast<double>(ns) / 1e6; };
  Json simulated{{"config", config},
                 {"micro_batches", shortened.micro_batches},
                 {"shown_micro_batches", shortened.shown},
                 {"step_ms", in_ms(shown.end - shown.begin + shortened.hidden_ns())}};
  if (shortened.is_short()) {
    simulated["steady_from_ms"] = in_ms(shortened.steady.begin - shown.begin);
    simulated["steady_to_ms"] = in_ms(shortened.steady.end - shown.begin);
    simulated["repeated"] = shortened.repeated;
  }
  const std::string head = simulated.dump(-1, ' ', false, Json::error_handler_t::replace);
  write_all(timelines, "\"weftSimulated\":" + head + ",", append);
}

}  // namespace weft::trace
