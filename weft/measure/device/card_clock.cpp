#include "weft/measure/device/card_clock.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "weft/base/library.h"
#include "weft/base/median.h"
#include "weft/tensor/stream.h"

namespace weft::measure {
namespace {

constexpr auto kPause = std::chrono::milliseconds(5);

// Used part of NVML. Its header is in the CUDA toolkit, which a build without a GPU lacks; these
// facts of its interface are stable.
struct Nvml {
  using Card = void*;
  static constexpr int kGood = 0, kMultiprocessors = 1;
  // Bit masks of throttling reasons.
  static constexpr unsigned long long kPower = 0x4 | 0x80;  // power limit and external power brake
  static constexpr unsigned long long kHeat = 0x8 | 0x20 | 0x40;  // by hardware and by the driver

  int (*init)() = nullptr;
  int (*find)(const char* pci, Card* card) = nullptr;
  int (*clock)(Card card, int kind, unsigned* mhz) = nullptr;
  int (*most_clock)(Card card, int kind, unsigned* mhz) = nullptr;
  int (*power)(Card card, unsigned* milliwatts) = nullptr;
  int (*most_power)(Card card, unsigned* milliwatts) = nullptr;
  int (*reasons)(Card card, unsigned long long* bits) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(base::find_symbol(library, name));
  return function != nullptr;
}

// Starts NVML once and never ends it: other code in the process may use it.
std::optional<Nvml> start_nvml() {
  void* library = base::open_foreign("libnvidia-ml.so.1");
  if (library == nullptr) return std::nullopt;
  Nvml nvml;
  const bool complete = find(library, "nvmlInit_v2", nvml.init) &&
                        find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.find) &&
                        find(library, "nvmlDeviceGetClockInfo", nvml.clock) &&
                        find(library, "nvmlDeviceGetMaxClockInfo", nvml.most_clock) &&
                        find(library, "nvmlDeviceGetPowerUsage", nvml.power) &&
                        find(library, "nvmlDeviceGetEnforcedPowerLimit", nvml.most_power) &&
                        find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", nvml.reasons);
  if (!complete || nvml.init() != Nvml::kGood) return std::nullopt;
  return nvml;
}

const std::optional<Nvml>& nvml() {
  static const std::optional<Nvml> library = start_nvml();
  return library;
}

class WatchedClock final : public CardClock {
 public:
  WatchedClock(Nvml::Card card, double most_mhz, double most_watts)
      : card_(card), most_mhz_(most_mhz), most_watts_(most_watts), thread_([this] { run(); }) {}
  ~WatchedClock() override {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  double most_mhz() const override { return most_mhz_; }
  double most_watts() const override { return most_watts_; }
  ClockSpan between(std::int64_t begin_ns, std::int64_t end_ns) const override {
    const std::lock_guard lock(mutex_);
    return clock_span(samples_, begin_ns, end_ns);
  }

 private:
  std::optional<ClockSample> ask() const {
    unsigned mhz = 0, milliwatts = 0;
    unsigned long long bits = 0;
    if (nvml()->clock(card_, Nvml::kMultiprocessors, &mhz) != Nvml::kGood ||
        nvml()->power(card_, &milliwatts) != Nvml::kGood ||
        nvml()->reasons(card_, &bits) != Nvml::kGood) {
      return std::nullopt;
    }
    return ClockSample{.at_ns = tensor::now_ns(),
                       .mhz = double(mhz),
                       .watts = milliwatts * 1e-3,
                       .held_back = {.by_power = (bits & Nvml::kPower) != 0,
                                     .by_heat = (bits & Nvml::kHeat) != 0}};
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (!stopped_) {
      lock.unlock();
      const std::optional<ClockSample> sample = ask();
      lock.lock();
      if (sample) samples_.push_back(*sample);
      wake_.wait_for(lock, kPause, [this] { return stopped_; });
    }
  }

  const Nvml::Card card_;
  const double most_mhz_, most_watts_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::vector<ClockSample> samples_;
  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace

ClockSpan clock_span(std::span<const ClockSample> samples,
                     std::int64_t begin_ns,
                     std::int64_t end_ns) {
  std::vector<double> mhz, watts;
  ClockSpan span;
  for (const ClockSample& sample : samples) {
    if (sample.at_ns < begin_ns || sample.at_ns > end_ns) continue;
    mhz.push_back(sample.mhz);
    watts.push_back(sample.watts);
    span.power_share += sample.held_back.by_power ? 1 : 0;
    span.heat_share += sample.held_back.by_heat ? 1 : 0;
  }
  if (mhz.empty()) return {};
  const auto [lowest, highest] = std::ranges::minmax(mhz);
  span.samples = int(mhz.size());
  span.lowest_mhz = lowest;
  span.highest_mhz = highest;
  span.median_mhz = base::median(mhz);
  span.median_watts = base::median(watts);
  span.power_share /= span.samples;
  span.heat_share /= span.samples;
  return span;
}

std::unique_ptr<CardClock> CardClock::watch(const std::string& pci) {
  Nvml::Card card = nullptr;
  unsigned mhz = 0, milliwatts = 0;
  if (!nvml() || nvml()->find(pci.c_str(), &card) != Nvml::kGood ||
      nvml()->most_clock(card, Nvml::kMultiprocessors, &mhz) != Nvml::kGood ||
      nvml()->most_power(card, &milliwatts) != Nvml::kGood) {
    return nullptr;
  }
  return std::make_unique<WatchedClock>(card, double(mhz), milliwatts * 1e-3);
}

}  // namespace weft::measure
