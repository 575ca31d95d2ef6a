#include "weft/comm/loopback/links.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "weft/base/error.h"

namespace weft::comm::loopback {
namespace {

// Late wake-up of a sleeping thread. A late end would count as exposed communication.
constexpr std::chrono::microseconds kAwake{150};

}  // namespace

void Links::set(const std::optional<grid::Fabric>& fabric) {
  wire_.set(fabric.value_or(grid::Fabric()));
  emulated_ = fabric.has_value();
}

std::int64_t Links::reserve(const Membership& group, std::span<const Part> parts) {
  if (!wire_.is_emulated()) return 0;
  const int own = group.world_rank();
  std::vector<grid::Transfer> transfers;
  for (const std::span<const Part> with : by_member(parts)) {
    if (with.front().member == group.self) continue;
    const int peer = group.rank_of(with.front().member);
    transfers.push_back({.from = own, .to = peer, .bytes = out_bytes(with)});
    transfers.push_back({.from = peer, .to = own, .bytes = in_bytes(with)});
  }
  if (transfers.empty()) return 0;
  std::vector<std::int64_t> end_ns(transfers.size());
  wire_.reserve(transfers, end_ns);
  return *std::ranges::max_element(end_ns);
}

void Links::wait_until(std::int64_t end_ns) {
  if (end_ns == 0) return;
  const std::chrono::steady_clock::time_point end{std::chrono::nanoseconds(end_ns)};
  {
    std::unique_lock lock(mutex_);
    failed_.wait_until(lock, end - kAwake, [this] { return has_failed_.load(); });
  }
  while (!has_failed_ && std::chrono::steady_clock::now() < end) {
  }
  if (has_failed_) {
    throw base::SystemError("this rank failed while its bytes were under way");
  }
}

void Links::fail() {
  const std::lock_guard lock(mutex_);
  has_failed_ = true;
  failed_.notify_all();
}

}  // namespace weft::comm::loopback
