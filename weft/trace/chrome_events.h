// The events of a Chrome trace, one after the other, whoever wrote it: the file is never held
// whole. What strangers write is bounded and checked: the depth of its nesting, texts, lists,
// times.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "weft/trace/shortened.h"

namespace weft::trace {

// One event, as far as an analysis looks at it. Numbers that are not there are kAbsent.
struct ChromeEvent {
  static constexpr std::int64_t kAbsent = -1;

  std::int64_t number = 0;  // in the file, from 1
  std::string name, category;
  char phase = ' ';
  std::int64_t process = kAbsent, thread = kAbsent;
  std::optional<double> begin_us, duration_us;

  struct Arguments {
    // As Weft writes them (chrome.h).
    std::string node, operation, name;
    std::int64_t run = kAbsent, layer = kAbsent, micro_batch = kAbsent, bytes = 0, rows = 0;
    bool coverable = false;
    std::vector<std::string> after;
    std::vector<int> members;
    // As PyTorch's profiler does: a kernel and its launch have one correlation.
    std::int64_t correlation = kAbsent, stream = kAbsent, device = kAbsent, device_type = kAbsent;
    std::string collective, group;                         // of NCCL, where it tells them
    std::int64_t allocated = kAbsent, reserved = kAbsent;  // bytes
  } arguments;

  // "event 12 ('gemm')", for messages.
  std::string place() const;
};

struct ChromeFile {
  std::int64_t events = 0;
  std::optional<int> rank = {};                      // that PyTorch says it is of
  std::optional<std::string> simulated_config = {};  // of a step that Weft simulated, as YAML
  Shortened shortened = {};                          // as the file says: nobody looked at it yet
  double step_ms = 0;                                // of that step, as a whole
};

// ConfigError, with `name` and the byte or the event, where it is no trace: cut off, nested too
// deep, or no JSON. `take` may keep what it is given.
ChromeFile parse_chrome_events(std::istream& stream,
                               const std::string& name,
                               const std::function<void(ChromeEvent&)>& take);

}  // namespace weft::trace
