#include "weft/exec/real/lanes.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/parallel/cores.h"

namespace weft::exec {

using schedule::Lane;
using tensor::StreamRole;

namespace {

StreamRole role_of(Lane lane, Cores cores) {
  if (schedule::is_copy(lane)) return StreamRole::Copy;
  if (lane != Lane::Compute) return StreamRole::Communication;
  return cores == Cores::Own ? StreamRole::ComputeOnOwnCores : StreamRole::Compute;
}

}  // namespace

Lanes::Lanes(tensor::Device& device, const schedule::Graph& graph, Cores cores)
    : failure_(std::make_unique<Failure>()) {
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
        device.make_stream(std::string(schedule::word(lane)),
                           alone ? StreamRole::Alone : role_of(lane, cores));
    streams_[static_cast<std::size_t>(i)]->on_failure(
        [failure = failure_.get()](const std::exception_ptr& error) {
          {
            const std::lock_guard lock(failure->mutex);
            if (failure->first) return;
            failure->first = error;
          }
          if (failure->tell) failure->tell(error);
        });
  }
  // The host issues and mostly waits. Called after the streams exist: their threads would inherit
  // it.
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
  const std::lock_guard lock(failure_->mutex);
  const auto first = std::ranges::find(errors, failure_->first);
  if (first != errors.end()) std::rotate(errors.begin(), first, first + 1);
  return errors;
}

void Lanes::on_failure(Tell tell) { failure_->tell = std::move(tell); }

void Lanes::tell(const std::exception_ptr& error) const {
  if (failure_->tell) failure_->tell(error);
}

}  // namespace weft::exec
