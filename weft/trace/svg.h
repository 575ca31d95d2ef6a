// Timelines as a picture: rows stacked on one time scale, so that a shorter step is a shorter row.
// A self-contained SVG with its own background, readable on light and dark pages.
//
// Each rank shows its compute lane and its communication lanes; each lane shows its whole nodes,
// coloured by activity. Idle time is blank, and a lane without nodes is left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/trace/span.h"

namespace weft::trace {

struct Picture {
  struct Row {
    struct Extent {
      std::int64_t begin_ns = 0, end_ns = 0;
    };
    std::string caption;
    std::vector<Timeline> timelines;
    std::optional<Extent> step{};  // if the timelines show only part of it
  };

  std::string title;
  std::vector<Row> rows;
};

struct SvgOptions {
  double from_ms = 0;           // relative to each row's step
  std::optional<double> to_ms;  // nullopt: end of the longest step
  std::optional<int> run;       // traced run; nullopt: the last of each row
};

// Texts are UTF-8.
std::string to_svg(const Picture& picture, const SvgOptions& options = {});

}  // namespace weft::trace
