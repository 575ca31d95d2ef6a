// What metrics.jsonl of a run folder says of steps, learning and experts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weft/report/report.h"

namespace weft::report {

struct MetricsFile {
  std::optional<StepTimes> steps;  // none: no line tells a time
  std::vector<LayerLoad> loads;    // by layer
  std::optional<Learning> learning = {};
  std::int64_t unread = 0;  // lines that are no JSON or say nothing of a step
};

// SystemError where the file cannot be read. A line longer than a mebibyte is not read.
MetricsFile read_metrics(const std::filesystem::path& file);

}  // namespace weft::report
