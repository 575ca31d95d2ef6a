// The timeline of a page: one step's spans by lane, as many as a page can hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/report/evidence.h"

namespace weft::report {

struct DrawnSpan {
  std::int32_t name = 0, kind = 0;
  std::int32_t count = 1;  // spans that it stands for: neighbours, too short to tell apart
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t waited_ns = 0;  // of it, from its begin: for peers or other nodes
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
  std::string note;         // what of the trace is shown
};

// Of Weft's the last traced step, of a profiler's all of it.
DrawnTimeline draw_timeline(const Evidence& evidence);

// Short neighbours on a lane become one until all lanes together have at most so many (or one
// each): those of one kind first.
void thin_out(DrawnTimeline& timeline, std::size_t most);

base::Json to_json(const DrawnTimeline& timeline);

}  // namespace weft::report
