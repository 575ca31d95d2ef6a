// Content of metrics.jsonl about steps, learning and experts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weft/report/report.h"

namespace weft::report {

struct MetricsFile {
  std::optional<StepTimes> steps;  // nullopt: no line has a time
  std::vector<LayerLoad> loads;    // by layer
  std::optional<Learning> learning = {};
  std::int64_t unread = 0;  // lines without valid JSON or without a step
};

// SystemError for an unreadable file. Skips lines longer than a mebibyte.
MetricsFile read_metrics(const std::filesystem::path& file);

}  // namespace weft::report
