// What the GPUs did in a trace of PyTorch's profiler, or of one that writes as it does.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/trace/chrome_events.h"
#include "weft/trace/span.h"

namespace weft::trace {

// A kernel or a copy. There may be millions.
struct Kernel {
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t launched_ns = kUnknown;  // when the host had issued it
  std::int32_t name = 0;                // in DeviceTraces::names
  std::int32_t stream = 0;
  SpanKind kind = SpanKind::Memory;  // as kernel_name.h tells it
  std::int16_t communication = -1;   // in DeviceTraces::communications; -1: none
};

struct MemoryPoint {
  std::int64_t at_ns = 0, allocated_bytes = 0, reserved_bytes = 0;
};

struct DeviceTrace {
  int device = 0;
  std::vector<Kernel> kernels;      // by begin
  std::vector<MemoryPoint> memory;  // by time; where the profiler was asked for it
};

struct DeviceTraces {
  std::vector<std::string> names;           // of kernels
  std::vector<std::string> communications;  // "ep", "all_gather", ...
  std::vector<DeviceTrace> devices;
  int steps = 1;  // that the profiler was told of
};

// Gathers them from the events of a file.
class DeviceCollector {
 public:
  void take(const ChromeEvent& event);
  bool is_empty() const { return kernels_ == 0; }
  // Once all events were taken.
  DeviceTraces finish();

 private:
  // What is known of a name, so that it is looked at once.
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
