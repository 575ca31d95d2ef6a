#include "weft/trace/chrome/chrome_read.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::trace {
namespace {

using base::text;

constexpr std::int64_t kMostSpans = 2'000'000;
constexpr std::uint64_t kMostTraceBytes = std::uint64_t{4} << 30;
constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::size_t kMostProcesses = 1 << 16;
constexpr std::size_t kMostCategories = 12;  // listed in a message

constexpr std::array kKinds{SpanKind::Node,
                            SpanKind::Gemm,
                            SpanKind::Attention,
                            SpanKind::Memory,
                            SpanKind::Copy,
                            SpanKind::Communication,
                            SpanKind::Host};

std::optional<SpanKind> kind_of(std::string_view category) {
  const auto found = std::ranges::find(kKinds, category, [](SpanKind kind) { return word(kind); });
  return found == kKinds.end() ? std::nullopt : std::optional(*found);
}

// Collects Weft's spans: a process is a rank, a thread is a lane. Names may follow the spans.
class TimelineCollector {
 public:
  void take(ChromeEvent& event) {
    if (event.phase == 'M') return take_name(event);
    if (event.phase == 'X' && event.arguments.run >= 0 && !event.arguments.node.empty()) {
      take_span(event);
    }
  }

  bool is_empty() const { return spans_ == 0; }

  std::vector<Timeline> finish() {
    std::vector<Timeline> timelines;
    for (auto& [process, rank] : ranks_) {
      if (rank.spans.empty()) continue;
      for (std::size_t i = 0; i < rank.spans.size(); ++i) {
        const auto lane = rank.lanes.find(rank.threads[i]);
        rank.spans[i].lane =
            lane == rank.lanes.end() ? text("thread {}", rank.threads[i]) : lane->second;
      }
      const std::string suffix = text(" rank {}", process);
      if (rank.label.ends_with(suffix)) rank.label.resize(rank.label.size() - suffix.size());
      timelines.push_back({.rank = static_cast<int>(process),
                           .label = std::move(rank.label),
                           .spans = std::move(rank.spans)});
    }
    return timelines;
  }

 private:
  struct Rank {
    std::string label;
    std::map<std::int64_t, std::string> lanes;  // by thread
    std::vector<Span> spans;
    std::vector<std::int64_t> threads;  // per span
  };

  Rank& rank_of(std::int64_t process) {
    const auto [found, is_new] = ranks_.try_emplace(process);
    if (is_new && ranks_.size() > kMostProcesses) {
      throw base::ConfigError(
          text("more than {} processes: trace fewer ranks, or name the file of one",
               kMostProcesses));
    }
    return found->second;
  }

  void take_name(ChromeEvent& event) {
    if (event.name == "process_name") rank_of(event.process).label = event.arguments.name;
    if (event.name == "thread_name") {
      rank_of(event.process).lanes[event.thread] = event.arguments.name;
    }
  }

  void take_span(ChromeEvent& event) {
    const std::optional<SpanKind> kind = kind_of(event.category);
    if (!kind) {
      throw base::ConfigError(
          text("{}: no such category of a span: '{}'", event.place(), base::shown(event.category)));
    }
    if (event.process < 0 || event.process >= kMostRanks) {
      throw base::ConfigError(text("{}: its pid is to be a rank", event.place()));
    }
    if (++spans_ > kMostSpans) {
      throw base::ConfigError(
          text("more than {} spans: trace fewer steps (runtime.trace_steps)", kMostSpans));
    }
    ChromeEvent::Arguments& arguments = event.arguments;
    const auto number = [](std::int64_t value) {
      return static_cast<int>(std::clamp<std::int64_t>(value, -1, 1 << 30));
    };
    Rank& rank = rank_of(event.process);
    rank.threads.push_back(event.thread);
    const std::int64_t begin_ns = std::llround(*event.begin_us * 1e3);
    rank.spans.push_back({.name = std::move(event.name),
                          .node = std::move(arguments.node),
                          .kind = *kind,
                          .run = number(arguments.run),
                          .begin_ns = begin_ns,
                          .end_ns = begin_ns + std::llround(event.duration_us.value_or(0) * 1e3),
                          .layer = number(arguments.layer),
                          .micro_batch = number(arguments.micro_batch),
                          .bytes = arguments.bytes,
                          .rows = arguments.rows,
                          .after = std::move(arguments.after),
                          .coverable = arguments.coverable,
                          .operation = std::move(arguments.operation),
                          .members = std::move(arguments.members)});
  }

  std::map<std::int64_t, Rank> ranks_;
  std::int64_t spans_ = 0;
};

}  // namespace

ChromeTrace parse_chrome(std::istream& stream, const std::string& name) {
  TimelineCollector timelines;
  DeviceCollector devices;
  std::set<std::string> categories;
  const auto take = [&](ChromeEvent& event) {
    if (categories.size() < kMostCategories && !event.category.empty()) {
      categories.insert(base::shown(event.category));
    }
    devices.take(event);
    timelines.take(event);
  };
  ChromeFile read;
  try {
    read = parse_chrome_events(stream, name, take);
  } catch (const base::ConfigError& error) {
    const std::string what = error.what();
    throw base::ConfigError(what.starts_with(name) ? what : text("{}: {}", name, what));
  }
  ChromeTrace trace{.timelines = {},
                    .devices = {},
                    .events = read.events,
                    .simulated_config = std::move(read.simulated_config),
                    .shortened = read.shortened,
                    .notes = {}};
  if (!timelines.is_empty()) {
    trace.timelines = timelines.finish();
    const std::string complaint = complaint_about(read.shortened, trace.timelines, read.step_ms);
    if (!complaint.empty()) {
      throw base::ConfigError(
          text("{}: weftSimulated: {}; write it again with weft plan --simulate --trace",
               name,
               complaint));
    }
    return trace;
  }
  if (devices.is_empty()) {
    throw base::ConfigError(
        text("{}: of its {} none is a span that Weft wrote or a kernel of a GPU (categories: {}); "
             "trace with runtime.trace=true, or with PyTorch's profiler and its CUDA activity",
             name,
             base::counted(read.events, "event"),
             categories.empty() ? "none" : text("{}", fmt::join(categories, ", "))));
  }
  trace.devices = devices.finish();
  if (read.rank && trace.devices->devices.size() == 1) {
    trace.devices->devices.front().device = *read.rank;
  }
  return trace;
}

ChromeTrace read_chrome(const std::filesystem::path& file, const ReadWatch& watch) {
  CleanBytes bytes(file, kMostTraceBytes, watch);
  const std::string name = base::shown(file.string());
  if (bytes.size() > kMostTraceBytes) {
    throw base::ConfigError(
        text("{}: {} are too many: a trace of at most {} is read; trace fewer "
             "steps or ranks",
             name,
             base::human_bytes(static_cast<double>(bytes.size())),
             base::human_bytes(static_cast<double>(kMostTraceBytes))));
  }
  std::istream stream(&bytes);
  ChromeTrace trace = parse_chrome(stream, name);
  if (bytes.blanks() > 0) {
    trace.notes.push_back(text("{} in the file were read as blanks",
                               base::counted(bytes.blanks(), "control character")));
  }
  return trace;
}

}  // namespace weft::trace
