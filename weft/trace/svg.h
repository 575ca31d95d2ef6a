// Timelines as a picture: rows one above the other on one time scale, so that a shorter step is a
// shorter row. A self-contained SVG with its own background, readable on light and dark pages.
//
// Of every rank it draws the compute lane and the communication lanes, and of every lane its whole
// nodes, coloured by what they are; where nothing ran is blank, and a lane on which nothing did is
// left out.
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
    std::optional<Extent> step{};  // where the timelines hold only a part of it
  };

  std::string title;
  std::vector<Row> rows;
};

struct SvgOptions {
  double from_ms = 0;           // of each row's step
  std::optional<double> to_ms;  // none: the end of the longest step
  std::optional<int> run;       // which traced run; none: the last of each row
};

// Texts are UTF-8.
std::string to_svg(const Picture& picture, const SvgOptions& options = {});

}  // namespace weft::trace
