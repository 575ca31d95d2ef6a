#include "weft/exec/real/lanes.h"

#include "weft/base/check.h"
#include "weft/base/cores.h"

namespace weft::exec {

using schedule::Lane;
using tensor::StreamMode;

Lanes::Lanes(const schedule::Graph& graph, int threads, Cores cores) {
  std::array<bool, schedule::kLanes> used{};
  for (const schedule::Entry& entry : graph.entries)
    used[static_cast<std::size_t>(entry.lane)] = true;
  used[static_cast<std::size_t>(Lane::Compute)] = true;
  used[static_cast<std::size_t>(Lane::Host)] = false;
  int count = 0;
  for (const bool lane : used) count += lane ? 1 : 0;
  const bool alone = count == 1;
  for (int i = 0; i < schedule::kLanes; ++i) {
    const auto lane = static_cast<Lane>(i);
    if (!used[static_cast<std::size_t>(i)]) continue;
    streams_[static_cast<std::size_t>(i)] =
        tensor::make_cpu_stream(std::string(schedule::word(lane)),
                                lane == Lane::Compute ? threads : 1,
                                alone                   ? StreamMode::Inline
                                : lane != Lane::Compute ? StreamMode::Prompt
                                : cores == Cores::Own   ? StreamMode::Yielding
                                                        : StreamMode::Threaded);
  }
  // The host issues, and mostly waits. After the streams: their threads would inherit it.
  if (!alone) base::wake_promptly();
}

tensor::Stream& Lanes::operator[](Lane lane) const {
  CHECK(has(lane), "no stream for lane {}", schedule::word(lane));
  return *streams_[static_cast<std::size_t>(lane)];
}

void Lanes::synchronize() const {
  const std::vector<std::exception_ptr> errors = drain();
  if (!errors.empty()) std::rethrow_exception(errors.front());
}

std::vector<std::exception_ptr> Lanes::drain() const {
  std::vector<std::exception_ptr> errors;
  for (const auto& stream : streams_) {
    if (!stream) continue;
    try {
      stream->synchronize();
    } catch (...) {
      errors.push_back(std::current_exception());
    }
  }
  return errors;
}

}  // namespace weft::exec
