// A Chrome trace read back: Weft's own (measured or simulated) as the timelines it was written
// from, one of PyTorch's profiler as what the GPUs did.
#pragma once

#include <filesystem>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "weft/trace/clean_bytes.h"
#include "weft/trace/device_trace.h"
#include "weft/trace/shortened.h"
#include "weft/trace/span.h"

namespace weft::trace {

struct ChromeTrace {
  std::vector<Timeline> timelines;      // by rank, where Weft wrote it; times from the first span
  std::optional<DeviceTraces> devices;  // where another program did
  std::int64_t events = 0;
  std::optional<std::string> simulated_config;  // where Weft simulated it: the run's, as YAML
  Shortened shortened = {};                     // where it shows less than that step
  std::vector<std::string> notes;               // what a reader should know of how it was read
};

// ConfigError, naming file and place, where it is no such trace, or too large. A file that gzip
// packed is unpacked as it is read. Control characters, which JSON allows nowhere, are read as
// blanks.
ChromeTrace read_chrome(const std::filesystem::path& file, const ReadWatch& watch = nullptr);
// The same of a stream that is called so.
ChromeTrace parse_chrome(std::istream& stream, const std::string& name);

}  // namespace weft::trace
