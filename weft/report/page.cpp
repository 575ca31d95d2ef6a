#include "weft/report/page.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/report/drawn_timeline.h"
#include "weft/report/render.h"
#include "weft/tensor/pool.h"

namespace weft::report {
namespace {

using base::Json;
using train::BytesByTag;

constexpr std::size_t kMostColumns = 600;
constexpr std::size_t kMostRanks = 256;
// Device tags come first and add up to a rank's bytes.
constexpr int kDrawnTags = tensor::kDeviceTags;

// Keeps the point with the most bytes in each column.
template <typename Point, typename Total>
std::vector<Point> thinned(const std::vector<Point>& points, const Total& total) {
  const std::size_t columns = std::min(points.size(), kMostColumns);
  std::vector<Point> most;
  for (std::size_t i = 0; i < columns; ++i) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / columns);
    const auto end =
        points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / columns);
    most.push_back(*std::max_element(begin, end, [&](const Point& a, const Point& b) {
      return total(a) < total(b);
    }));
  }
  return most;
}

Json stage_json(std::size_t stage, const train::PredictedMemory& memory) {
  return {{"title",
           base::text("pp rank {}: peak {}{}{}",
                      stage,
                      base::human_bytes(static_cast<double>(memory.peak_total_bytes)),
                      memory.at_peak.node.empty() ? "" : " at ",
                      memory.at_peak.node)},
          {"peak", memory.peak_total_bytes},
          {"columns", thinned(memory.timeline, train::total_of)}};
}

Json predicted_memory(const MemoryWall& memory) {
  Json labels = Json::array(), stages = Json::array();
  for (int tag = 0; tag < kDrawnTags; ++tag) {
    labels.push_back(tensor::name_of(static_cast<tensor::Tag>(tag)));
  }
  for (std::size_t stage = 0; stage < memory.forecast.stages.size(); ++stage) {
    const train::PredictedMemory& one = memory.forecast.stages[stage];
    if (!one.timeline.empty()) stages.push_back(stage_json(stage, one));
  }
  return {{"labels", std::move(labels)},
          {"axis", "nodes of a training step as they are issued; predicted"},
          {"room", memory.room_bytes},
          {"stages", std::move(stages)}};
}

// Memory recorded by the profiler's allocator: in use, and reserved.
Json profiled_memory(const trace::DeviceTraces& traces) {
  Json stages = Json::array();
  for (const trace::DeviceTrace& device : traces.devices) {
    if (device.memory.empty()) continue;
    const auto allocated = [](const trace::MemoryPoint& point) { return point.allocated_bytes; };
    Json columns = Json::array();
    std::int64_t peak = 1;
    for (const trace::MemoryPoint& point : thinned(device.memory, allocated)) {
      const std::int64_t held =
          std::max<std::int64_t>(0, point.reserved_bytes - point.allocated_bytes);
      columns.push_back({point.allocated_bytes, held});
      peak = std::max(peak, point.allocated_bytes + held);
    }
    stages.push_back({{"title", base::text("GPU {}", device.device)},
                      {"peak", peak},
                      {"columns", std::move(columns)}});
  }
  return {{"labels", {"allocated", "reserved besides"}},
          {"axis", "events of the allocator, in the order of time"},
          {"room", 0},
          {"stages", std::move(stages)}};
}

Json memory_of(const Report& report, const Evidence& evidence) {
  if (report.memory) return predicted_memory(*report.memory);
  if (evidence.devices) return profiled_memory(*evidence.devices);
  return {{"labels", Json::array()}, {"axis", ""}, {"room", 0}, {"stages", Json::array()}};
}

// JSON inside HTML, escaped so that it cannot end its element.
std::string for_page(const Json& json) {
  const std::string raw = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(raw.size());
  for (const char c : raw) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

void put(std::string& page, std::string_view place, std::string_view content) {
  const std::size_t at = page.find(place);
  CHECK(at != page.npos, "the page has no place {}", place);
  page.replace(at, place.size(), content);
}

// A page shows some ranks and no single nodes.
Json report_for_page(const Report& report) {
  Json json = to_json(report);
  Json& ranks = json["ranks"];
  json["rank_count"] = ranks.size();
  while (ranks.size() > kMostRanks) ranks.erase(ranks.size() - 1);
  if (json["comparison"].is_object()) json["comparison"].erase("nodes");
  return json;
}

// Adds a note: the timeline is one step, while the report's step is a mean or has more
// micro-batches.
DrawnTimeline timeline_for_page(const Report& report, const Evidence& evidence) {
  DrawnTimeline timeline = draw_timeline(evidence);
  const double shown_ms = static_cast<double>(timeline.end_ns) / 1e6;
  if (report.traced_steps == 0) return timeline;
  if (evidence.devices) {
    timeline.note += base::text(" It is {:.4g} ms long.", shown_ms);
  } else if (report.shortened.is_short()) {
    timeline.note += base::text(" It shows {:.4g} of {:.4g} ms: {} of {} micro-batches.",
                                shown_ms,
                                report.walls.step,
                                report.shortened.shown,
                                report.shortened.micro_batches);
  } else {
    timeline.note += base::text(" It took {:.4g} ms", shown_ms);
    timeline.note += report.traced_steps > 1
                         ? base::text("; {:.4g} ms is the mean of {} traced steps.",
                                      report.walls.step,
                                      report.traced_steps)
                         : ".";
  }
  return timeline;
}

}  // namespace

std::string to_page(const Report& report, const Evidence& evidence) {
  const Json data{{"report", report_for_page(report)},
                  {"timeline", to_json(timeline_for_page(report, evidence))},
                  {"memory", memory_of(report, evidence)}};
  std::string page(kPageHtml);
  put(page, "/*STYLE*/", kPageStyle);
  put(page, "/*SCRIPT*/", kPageScript);
  put(page, "/*DATA*/", for_page(data));  // last: its content is not searched for placeholders
  return page;
}

}  // namespace weft::report
