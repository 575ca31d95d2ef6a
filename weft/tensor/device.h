// WITH WHAT? A device makes memory and streams and holds the operations that run on them. A rank
// has one device; all its memory and streams come from it.
//
// Code above tensor/ cannot tell the device's kind. The host reaches device memory in three ways:
// by copies enqueued on a stream (tensor/transfer.h), through host-visible tensors
// (tensor/tensor.h), and in host work that a stream runs in order (Stream::enqueue_host).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weft::kernels {
struct Operations;  // see kernels/operations.h
}

namespace weft::tensor {

class Stream;

// Device: fast, not addressable by the host. HostVisible: host and device use the same addresses
// (pinned memory); for the few numbers that the host reads or writes.
enum class Memory { Device, HostVisible };

// Purpose of a stream; the device decides how to serve it. Alone: only stream of its rank, so no
// work runs beside it. Compute: computes beside communication. ComputeOnOwnCores: Compute on cores
// that only this run uses; it gives way to communication. Communication: mostly waits, and
// continues promptly. Copy: as Communication, but moves so much memory between device and host that
// one thread is too slow.
enum class StreamRole { Alone, Compute, ComputeOnOwnCores, Communication, Copy };

// Growing memory that a pool divides.
class Region {
 public:
  virtual ~Region() = default;
  // Grows by at least `bytes`, with undefined content. Throws SystemError if the device has no
  // more.
  virtual std::span<std::byte> grow(std::size_t bytes) = 0;
  // True if new memory usually lies directly behind the last and joins it.
  virtual bool grows_in_place() const = 0;
  // Returns up to the last `bytes` to the device; returns the number of bytes returned.
  virtual std::size_t give_back_end(std::size_t bytes) = 0;
};

// Yes: equal work gives equal bits in every run. No: the device may add in varying order where that
// is faster.
enum class Deterministic { No, Yes };

class Device {
 public:
  explicit Device(const kernels::Operations& operations) : operations_(operations) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string_view name() const = 0;  // "cpu"
  const kernels::Operations& operations() const { return operations_; }
  // True if operations run on the host's cores. If false, host-core work on host-visible memory
  // needs a second device.
  virtual bool is_the_host() const { return false; }

  // The device outlives its streams and memory.
  virtual std::unique_ptr<Stream> make_stream(std::string name, StreamRole role) = 0;

  // Memory aligned for any use, with undefined content. Throws SystemError if the device has no
  // more.
  virtual std::byte* take(Memory memory, std::size_t bytes) = 0;
  virtual void give_back(Memory memory, std::byte* data, std::size_t bytes) = 0;
  virtual std::unique_ptr<Region> make_region(Memory memory) = 0;

 private:
  const kernels::Operations& operations_;
};

}  // namespace weft::tensor
