// Reader of Chrome traces: Weft's own (measured or simulated) as timelines, a PyTorch profiler's as
// GPU kernels.
#pragma once

#include <filesystem>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "weft/trace/chrome/clean_bytes.h"
#include "weft/trace/device_trace.h"
#include "weft/trace/exposure/shortened.h"
#include "weft/trace/span.h"

namespace weft::trace {

struct ChromeTrace {
  std::vector<Timeline> timelines;  // by rank, if Weft wrote the trace; times from the first span
  std::optional<DeviceTraces> devices;  // if another program wrote the trace
  std::int64_t events = 0;
  std::optional<std::string> simulated_config;  // the run's YAML, if Weft simulated the step
  Shortened shortened = {};                     // micro-batches that the trace leaves out
  std::vector<std::string> notes;               // remarks for the reader on how the trace was read
};

// Throws ConfigError, naming file and place, if the file is not a trace or too large. Gzip files
// are unpacked while reading. Control characters, which JSON forbids, are read as blanks.
ChromeTrace read_chrome(const std::filesystem::path& file, const ReadWatch& watch = nullptr);
// Reads from a stream; `name` appears in errors.
ChromeTrace parse_chrome(std::istream& stream, const std::string& name);

}  // namespace weft::trace
