#include "weft/checkpoint/snapshot.h"

#include "weft/base/casts.h"
#include "weft/tensor/device.h"
#include "weft/tensor/stream.h"

namespace weft::checkpoint {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

Snapshot::Snapshot(tensor::Device& device, std::vector<StateEntry> entries)
    : device_(device), entries_(std::move(entries)) {
  for (const StateEntry& entry : entries_) {
    begins_.push_back(bytes_);
    bytes_ += room_for(entry.tensor.bytes());
  }
  if (bytes_ > 0) memory_ = device_.take(tensor::Memory::HostVisible, bytes_);
}

std::size_t Snapshot::room_for(std::int64_t entry_bytes) {
  return (base::at(entry_bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

Snapshot::~Snapshot() {
  if (memory_ != nullptr) device_.give_back(tensor::Memory::HostVisible, memory_, bytes_);
}

void Snapshot::copy(tensor::Stream& stream) const {
  std::vector<tensor::Download> all;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const tensor::Tensor& from = entries_[i].tensor;
    all.push_back({.to = memory_ + begins_[i], .from = from.raw(stream), .bytes = from.bytes()});
  }
  stream.download_all(std::move(all));
}

std::span<const std::byte> Snapshot::values(std::size_t entry) const {
  return {memory_ + begins_[entry], base::at(entries_[entry].tensor.bytes())};
}

}  // namespace weft::checkpoint
