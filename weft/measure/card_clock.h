// The clock of a GPU while it works, and what held it back: asked of NVIDIA's management library
// (NVML), which comes with the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace weft::measure {

// Why a card runs slower than it could.
struct HeldBack {
  bool by_power = false, by_heat = false;
};

struct ClockSample {
  std::int64_t at_ns = 0;  // tensor::now_ns
  double mhz = 0, watts = 0;
  HeldBack held_back;
};

// Of the samples of a stretch of time.
struct ClockSpan {
  int samples = 0;
  double lowest_mhz = 0, median_mhz = 0, highest_mhz = 0;
  double median_watts = 0;
  double power_share = 0, heat_share = 0;  // of the samples that were held back by it
};
ClockSpan clock_span(std::span<const ClockSample> samples,
                     std::int64_t begin_ns,
                     std::int64_t end_ns);

// Asks the card every few milliseconds, on a thread of its own, until it is destroyed.
class CardClock {
 public:
  // `pci`: "0000:1b:00.0". Null where the library is missing or does not know the card.
  static std::unique_ptr<CardClock> watch(const std::string& pci);

  virtual ~CardClock() = default;
  virtual double most_mhz() const = 0;
  virtual double most_watts() const = 0;
  virtual ClockSpan between(std::int64_t begin_ns, std::int64_t end_ns) const = 0;
};

}  // namespace weft::measure
