#include "weft/trace/device_trace.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/trace/kernel_name.h"

namespace weft::trace {
namespace {

constexpr std::int64_t kMostKernels = 10'000'000;
constexpr std::size_t kMostDevices = 1 << 16;
constexpr std::size_t kMostNames = 100'000;
constexpr std::size_t kMostCommunications = 64;

std::int64_t nanoseconds(double us) { return std::llround(us * 1e3); }

std::int64_t begin_of(const ChromeEvent& event) { return nanoseconds(*event.begin_us); }
std::int64_t end_of(const ChromeEvent& event) {
  return nanoseconds(*event.begin_us + event.duration_us.value_or(0));
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

bool is_kernel(const ChromeEvent& event) {
  return is_one_of(event.category,
                   {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"});
}

bool is_launch(const ChromeEvent& event) {
  return event.arguments.correlation > 0 &&
         is_one_of(event.category, {"cuda_runtime", "cuda_driver", "Runtime"});
}

}  // namespace

int DeviceCollector::number_of(const std::string& name,
                               Numbers& numbers,
                               std::vector<std::string>& names) {
  const auto found = numbers.find(name);
  if (found != numbers.end()) return found->second;
  const int number = static_cast<int>(names.size());
  names.push_back(name);
  numbers.emplace(name, number);
  return number;
}

void DeviceCollector::take(const ChromeEvent& event) {
  if (event.name == "[memory]" && event.begin_us && event.arguments.device_type == 1) {
    memory_[static_cast<int>(std::max<std::int64_t>(0, event.process))].push_back(
        {.at_ns = begin_of(event),
         .allocated_bytes = std::max<std::int64_t>(0, event.arguments.allocated),
         .reserved_bytes = std::max<std::int64_t>(0, event.arguments.reserved)});
    return;
  }
  if (event.phase != 'X') return;
  if (event.name.starts_with("ProfilerStep#")) steps_.insert(event.name);
  if (is_launch(event)) {
    launches_.push_back({.correlation = event.arguments.correlation, .at_ns = end_of(event)});
  }
  if (is_kernel(event)) take_kernel(event);
}

DeviceCollector::Sort DeviceCollector::sort_of(const ChromeEvent& event) {
  const ChromeEvent::Arguments& arguments = event.arguments;
  const std::string about = event.name + '\n' + arguments.collective + '\n' + arguments.group;
  if (const auto known = sorts_.find(about); known != sorts_.end()) return known->second;
  const bool is_copy = is_one_of(event.category, {"gpu_memcpy", "Memcpy"});
  const KernelSort made = is_copy
                              ? sort_of_copy(event.name)
                              : sort_of_kernel(event.name, arguments.collective, arguments.group);
  Sort sort{.kind = made.kind};
  if (made.kind == SpanKind::Communication) {
    const bool is_full = traces_.communications.size() >= kMostCommunications;
    sort.communication = number_of(is_full ? "other" : made.communication,
                                   communication_numbers_,
                                   traces_.communications);
  }
  if (sorts_.size() < kMostNames) sorts_.emplace(about, sort);
  return sort;
}

void DeviceCollector::take_kernel(const ChromeEvent& event) {
  if (++kernels_ > kMostKernels) {
    throw base::ConfigError(base::text("more than {} kernels: trace fewer steps", kMostKernels));
  }
  const auto bounded = [](std::int64_t number) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(number, 0, 1 << 20));
  };
  const ChromeEvent::Arguments& arguments = event.arguments;
  const Sort sort = sort_of(event);
  const bool is_full = traces_.names.size() >= kMostNames;
  const std::int64_t device = arguments.device >= 0 ? arguments.device : event.process;
  const std::int64_t stream = arguments.stream >= 0 ? arguments.stream : event.thread;
  std::vector<Waiting>& waiting = waiting_[bounded(device)];
  if (waiting_.size() > kMostDevices) {
    throw base::ConfigError(
        base::text("more than {} devices: trace fewer ranks, or name the file of one",
                   kMostDevices));
  }
  waiting.push_back({.kernel = {.begin_ns = begin_of(event),
                                .end_ns = end_of(event),
                                .name = number_of(is_full ? "(one of many names)" : event.name,
                                                  name_numbers_,
                                                  traces_.names),
                                .stream = bounded(stream),
                                .kind = sort.kind,
                                .communication = static_cast<std::int16_t>(sort.communication)},
                     .correlation = arguments.correlation});
}

DeviceTraces DeviceCollector::finish() {
  std::ranges::sort(launches_, {}, [](const Launch& launch) {
    return std::pair(launch.correlation, launch.at_ns);
  });
  for (auto& [device, waiting] : waiting_) {
    DeviceTrace& trace = traces_.devices.emplace_back(DeviceTrace{.device = device});
    for (Waiting& one : waiting) {
      const auto launch =
          std::ranges::lower_bound(launches_, one.correlation, {}, &Launch::correlation);
      const bool is_known = one.correlation > 0 && launch != launches_.end() &&
                            launch->correlation == one.correlation;
      if (is_known) one.kernel.launched_ns = launch->at_ns;
      trace.kernels.push_back(one.kernel);
    }
    waiting = {};
    std::ranges::sort(trace.kernels, {}, [](const Kernel& kernel) {
      return std::pair(kernel.begin_ns, kernel.end_ns);
    });
  }
  // Memory events name the host process; with a single device, they belong to it.
  if (traces_.devices.size() == 1) {
    for (auto& [process, points] : memory_) {
      std::vector<MemoryPoint>& all = traces_.devices.front().memory;
      all.insert(all.end(), points.begin(), points.end());
    }
    std::ranges::stable_sort(traces_.devices.front().memory, {}, &MemoryPoint::at_ns);
  }
  traces_.steps = std::max<int>(1, static_cast<int>(steps_.size()));
  return std::move(traces_);
}

}  // namespace weft::trace
