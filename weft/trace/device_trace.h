// GPU activity in a trace of PyTorch's profiler, or of one with the same format.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/trace/chrome/chrome_events.h"
#include "weft/trace/span.h"

namespace weft::trace {

// Kernel or copy. A trace may hold millions.
struct Kernel {
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t launched_ns = kUnknown;  // end of its launch on the host
  std::int32_t name = 0;                // index into DeviceTraces::names
  std::int32_t stream = 0;
  SpanKind kind = SpanKind::Memory;  // see kernel_name.h
  std::int16_t communication = -1;   // index into DeviceTraces::communications; -1: none
};

struct MemoryPoint {
  std::int64_t at_ns = 0, allocated_bytes = 0, reserved_bytes = 0;
};

struct DeviceTrace {
  int device = 0;
  std::vector<Kernel> kernels;      // by begin
  std::vector<MemoryPoint> memory;  // by time; empty unless memory was profiled
};

struct DeviceTraces {
  std::vector<std::string> names;           // kernel names
  std::vector<std::string> communications;  // "ep", "all_gather", ...
  std::vector<DeviceTrace> devices;
  int steps = 1;  // steps that the profiler recorded
};

// Collects device traces from the events of a file.
class DeviceCollector {
 public:
  void take(const ChromeEvent& event);
  bool is_empty() const { return kernels_ == 0; }
  // Called after all events.
  DeviceTraces finish();

 private:
  // Cached result for a kernel name.
  struct Sort {
    SpanKind kind = SpanKind::Memory;
    int communication = -1;
  };
  using Numbers = std::map<std::string, int, std::less<>>;

  void take_kernel(const ChromeEvent& event);
  Sort sort_of(const ChromeEvent& event);
  static int number_of(const std::string& name, Numbers& numbers, std::vector<std::string>& names);

  struct Waiting {
    Kernel kernel;
    std::int64_t correlation = 0;
  };
  struct Launch {
    std::int64_t correlation = 0, at_ns = 0;
  };

  std::int64_t kernels_ = 0;
  DeviceTraces traces_;
  Numbers name_numbers_, communication_numbers_;
  std::map<std::string, Sort, std::less<>> sorts_;
  std::map<int, std::vector<Waiting>> waiting_;  // by device
  std::map<int, std::vector<MemoryPoint>> memory_;
  std::vector<Launch> launches_;
  std::set<std::string, std::less<>> steps_;
};

}  // namespace weft::trace
