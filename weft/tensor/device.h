// WITH WHAT? A device makes memory and streams and holds the operations that run on them. A rank
// has one; everything of the rank that lies in memory or runs on a stream comes from it.
//
// What is above tensor/ cannot tell which device it is on. The host reaches device memory in three
// ways: by copies enqueued on a stream (tensor/transfer.h), through tensors that it allocated as
// host-visible (tensor/tensor.h), and in work of its own that a stream runs in order
// (Stream::enqueue_host).
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

// Device: fast, and out of the host's reach. HostVisible: the host and the device reach it at the
// same addresses (pinned memory); for the few numbers that the host reads or writes.
enum class Memory { Device, HostVisible };

// What a stream is for; how it is served is the device's matter. Alone: the only stream of its
// rank, so that nothing can run beside it. Compute: computes beside communication.
// ComputeOnOwnCores: the same, where nobody but the run uses the cores: it gives way to
// communication. Communication: mostly waits, and goes on at once when what it waits for is over.
// Copy: the same, and moves so much memory between device and host that one thread is too slow.
enum class StreamRole { Alone, Compute, ComputeOnOwnCores, Communication, Copy };

// Memory that a pool cuts up, and that grows as more is needed.
class Region {
 public:
  virtual ~Region() = default;
  // At least so much more. Its content is undefined. SystemError where there is none left.
  virtual std::span<std::byte> grow(std::size_t bytes) = 0;
  // Whether that mostly lies directly behind what came last, and is one with it.
  virtual bool grows_in_place() const = 0;
  // Gives the last `bytes` back to the device, or as much of them as it can; how much.
  virtual std::size_t give_back_end(std::size_t bytes) = 0;
};

// Whether the same work has the same bits in every run. No: the device may add in an order that
// varies, where that is faster.
enum class Deterministic { No, Yes };

class Device {
 public:
  explicit Device(const kernels::Operations& operations) : operations_(operations) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string_view name() const = 0;  // "cpu"
  const kernels::Operations& operations() const { return operations_; }
  // Whether its operations run on the host's own cores. Where they do not, work of those cores on
  // host-visible memory needs a device beside this one.
  virtual bool is_the_host() const { return false; }

  // The device outlives its streams and its memory.
  virtual std::unique_ptr<Stream> make_stream(std::string name, StreamRole role) = 0;

  // A piece of memory, aligned for any use. Its content is undefined. SystemError where there is
  // none left.
  virtual std::byte* take(Memory memory, std::size_t bytes) = 0;
  virtual void give_back(Memory memory, std::byte* data, std::size_t bytes) = 0;
  virtual std::unique_ptr<Region> make_region(Memory memory) = 0;

 private:
  const kernels::Operations& operations_;
};

}  // namespace weft::tensor
