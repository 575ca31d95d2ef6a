// Timeline of a page: one step's spans by lane, thinned to fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/report/evidence.h"

namespace weft::report {

struct DrawnSpan {
  std::int32_t name = 0, kind = 0;
  std::int32_t count = 1;  // adjacent spans merged into this one
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t waited_ns = 0;  // wait at its begin for peers or other nodes
};

struct DrawnTimeline {
  struct Kind {
    std::string name, colour;
  };
  struct Lane {
    std::string group;             // "rank 0", "GPU 3"
    std::string name;              // "compute", "stream 7"
    std::vector<DrawnSpan> spans;  // by begin
  };
  std::vector<Kind> kinds;
  std::vector<std::string> names;
  std::vector<Lane> lanes;
  std::int64_t end_ns = 0;  // times begin at 0
  std::string note;         // part of the trace that is shown
};

// Draws the last traced step of Weft, or a whole profiler trace.
DrawnTimeline draw_timeline(const Evidence& evidence);

// Merges adjacent short spans until all lanes have at most `most` spans in total (or one each).
// Spans of one kind merge first.
void thin_out(DrawnTimeline& timeline, std::size_t most);

base::Json to_json(const DrawnTimeline& timeline);

}  // namespace weft::report
