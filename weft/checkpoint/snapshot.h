// State as it was at one moment, in the host's memory: what is saved while the run goes on.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/checkpoint/state.h"
#include "weft/tensor/device.h"

namespace weft::checkpoint {

class Snapshot {
 public:
  // Takes memory of the host for all entries, which the device copies to at its full speed, and
  // keeps it: every copy goes there. The device outlives it.
  Snapshot(tensor::Device& device, std::vector<StateEntry> entries);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Enqueues the copy; it is there when the stream has passed it.
  void copy(tensor::Stream& stream) const;

  const std::vector<StateEntry>& entries() const { return entries_; }
  std::span<const std::byte> values(std::size_t entry) const;  // as they were copied last
  std::size_t bytes() const { return bytes_; }
  static std::size_t room_for(std::int64_t entry_bytes);  // of one entry, in bytes()

 private:
  tensor::Device& device_;
  const std::vector<StateEntry> entries_;
  std::vector<std::size_t> begins_;  // of each entry
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;  // none where nothing is kept
};

}  // namespace weft::checkpoint
