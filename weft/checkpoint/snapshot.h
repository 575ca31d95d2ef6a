// Copy of the state at one moment in host memory, saved while the run continues.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/checkpoint/state.h"
#include "weft/tensor/device.h"

namespace weft::checkpoint {

class Snapshot {
 public:
  // Allocates host-visible memory for all entries, which the device fills at full speed, and reuses
  // it for every copy. The device must outlive it.
  Snapshot(tensor::Device& device, std::vector<StateEntry> entries);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Enqueues the copy; it is complete when the stream has passed it.
  void copy(tensor::Stream& stream) const;

  const std::vector<StateEntry>& entries() const { return entries_; }
  std::span<const std::byte> values(std::size_t entry) const;  // from the last copy
  std::size_t bytes() const { return bytes_; }
  static std::size_t room_for(std::int64_t entry_bytes);  // bytes() of one entry

 private:
  tensor::Device& device_;
  const std::vector<StateEntry> entries_;
  std::vector<std::size_t> begins_;  // offset of each entry
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;  // nullptr: no entries
};

}  // namespace weft::checkpoint
