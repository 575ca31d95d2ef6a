// Streaming parser of Chrome trace events, from any writer: the file is never in memory as a whole.
// Input is untrusted, so nesting depth, texts, lists and times are bounded and checked.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "weft/trace/exposure/shortened.h"

namespace weft::trace {

// One event, with the fields that an analysis reads. Absent numbers are kAbsent.
struct ChromeEvent {
  static constexpr std::int64_t kAbsent = -1;

  std::int64_t number = 0;  // index in the file, from 1
  std::string name, category;
  char phase = ' ';
  std::int64_t process = kAbsent, thread = kAbsent;
  std::optional<double> begin_us, duration_us;

  struct Arguments {
    // Fields that Weft writes (chrome.h).
    std::string node, operation, name;
    std::int64_t run = kAbsent, layer = kAbsent, micro_batch = kAbsent, bytes = 0, rows = 0;
    bool coverable = false;
    std::vector<std::string> after;
    std::vector<int> members;
    // Fields of PyTorch's profiler: a kernel and its launch share a correlation.
    std::int64_t correlation = kAbsent, stream = kAbsent, device = kAbsent, device_type = kAbsent;
    std::string collective, group;                         // from NCCL, if given
    std::int64_t allocated = kAbsent, reserved = kAbsent;  // bytes
  } arguments;

  // "event 12 ('gemm')", for messages.
  std::string place() const;
};

struct ChromeFile {
  std::int64_t events = 0;
  std::optional<int> rank = {};                      // rank that PyTorch's profiler names
  std::optional<std::string> simulated_config = {};  // YAML of a step that Weft simulated
  Shortened shortened = {};                          // as written in the file, not checked yet
  double step_ms = 0;                                // whole time of the simulated step
};

// Throws ConfigError, with `name` and the byte or the event, if the text is not a trace: cut off,
// nested too deep, or no JSON. `take` may move from its argument.
ChromeFile parse_chrome_events(std::istream& stream,
                               const std::string& name,
                               const std::function<void(ChromeEvent&)>& take);

}  // namespace weft::trace
