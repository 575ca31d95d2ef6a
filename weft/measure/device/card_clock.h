// Clock of a GPU under load and the reasons for throttling, from NVIDIA's management library
// (NVML), which comes with the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace weft::measure {

// Reasons for throttling.
struct HeldBack {
  bool by_power = false, by_heat = false;
};

struct ClockSample {
  std::int64_t at_ns = 0;  // tensor::now_ns
  double mhz = 0, watts = 0;
  HeldBack held_back;
};

// Summary of the samples in a time span.
struct ClockSpan {
  int samples = 0;
  double lowest_mhz = 0, median_mhz = 0, highest_mhz = 0;
  double median_watts = 0;
  double power_share = 0, heat_share = 0;  // shares of the samples throttled for this reason
};
ClockSpan clock_span(std::span<const ClockSample> samples,
                     std::int64_t begin_ns,
                     std::int64_t end_ns);

// Samples the GPU every few milliseconds on a thread of its own, until destroyed.
class CardClock {
 public:
  // `pci`: "0000:1b:00.0". nullptr: no NVML, or NVML does not know the GPU.
  static std::unique_ptr<CardClock> watch(const std::string& pci);

  virtual ~CardClock() = default;
  virtual double most_mhz() const = 0;
  virtual double most_watts() const = 0;
  virtual ClockSpan between(std::int64_t begin_ns, std::int64_t end_ns) const = 0;
};

}  // namespace weft::measure
