// A stream runs work in the order of its enqueueing. Streams run concurrently; events order them.
//
// The host thread of a rank enqueues. It alone calls these functions unless a comment says
// otherwise. A stream keeps its first error: later work is skipped. Every later wait on the stream,
// by host or stream, throws that error with the label of the failed work.
//
// Operations (kernels/kernels.h) enqueue computation; a device's own stream class has the functions
// that its operations call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/parallel/bell.h"
#include "weft/tensor/device.h"
#include "weft/tensor/work.h"

namespace weft::tensor {

class Stream;
class Transfers;

// Position in a stream: the end of everything enqueued before it was recorded.
struct Event {
  Stream* stream = nullptr;  // nullptr: already complete
  std::uint64_t ticket = 0;
};

// One executed piece of work, recorded while tracing. Times are those of std::chrono::steady_clock.
struct WorkSpan {
  std::string_view label;  // node that enqueued it; lives as long as the stream
  std::string_view name;   // operation
  WorkClass kind = WorkClass::Memory;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  WorkSize size{};
};

// One of several copies from the device's memory to the host's.
struct Download {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t bytes = 0;
};

// Host work in a stream's order; see Stream::enqueue_host.
using HostWork = std::function<void(Transfers&)>;

class Stream {
 public:
  Stream(Device& device, StreamRole role) : device_(device), role_(role) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return device_; }
  StreamRole role() const { return role_; }
  virtual const std::string& name() const = 0;

  // Copies between host memory, which must stay valid until the copy is complete, and device
  // memory. Callers use the typed functions of tensor/transfer.h.
  virtual void upload(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  void download(std::byte* to, const std::byte* from, std::int64_t bytes) {
    download_all({{.to = to, .from = from, .bytes = bytes}});
  }
  // Downloads all, in any order.
  virtual void download_all(std::vector<Download> all) = 0;

  // Runs `work` in stream order, outside the host thread; at once if the stream is Alone. `work`
  // may block, as a rendezvous of ranks does; its exceptions become the stream's error. `name` must
  // outlive the stream's work (a literal).
  virtual void enqueue_host(std::string_view name,
                            WorkClass kind,
                            HostWork work,
                            WorkSize size = {}) = 0;

  // Position at the end of the work enqueued so far.
  virtual Event record() = 0;
  // Makes later work start after the event. Throws only if the stream is Alone.
  virtual void wait(const Event& event) = 0;
  // Blocks the host until an event of this stream is complete; throws the stream's error.
  virtual void host_wait(const Event& event) = 0;
  void synchronize() { host_wait(record()); }

  // True if work enqueued from now on starts after the event. This follows from the waits enqueued
  // so far, directly or through other streams: from the order of calls, never from timing.
  bool knows(const Event& event) const;
  // Records that the event is complete before any work enqueued from now on. The caller knows this
  // from outside, such as a message that is sent only after the event.
  void learn(const Event& event);
  // True if the host has waited for `ticket` of this stream or a later one: everything enqueued
  // anywhere since then comes after it.
  bool host_knows(std::uint64_t ticket) const { return host_knows_ >= ticket; }

  // Ticket of the next enqueued work.
  virtual std::uint64_t next_ticket() const = 0;
  virtual bool reached(std::uint64_t ticket) const = 0;
  // Error that the stream keeps, as far as known now. Any thread may ask.
  virtual std::exception_ptr error() const = 0;
  // Called by threads of other streams: sleeps on the caller's `bell` until the ticket is complete,
  // then returns the stream's error.
  virtual std::exception_ptr await(std::uint64_t ticket,
                                   const std::shared_ptr<base::Bell>& bell) = 0;

  // Registers `tell`, called once by the thread that runs the work, as soon as the stream has an
  // error.
  virtual void on_failure(std::function<void(const std::exception_ptr&)> tell) = 0;

  // Sets the node that later work belongs to.
  virtual void set_label(std::string_view label) = 0;

  virtual void start_recording() = 0;
  // Stops recording and returns the spans; call after synchronize().
  virtual std::vector<WorkSpan> take_recording() = 0;

 protected:
  // Records that the host has waited for `ticket`.
  void host_learns(std::uint64_t ticket);
  // Streams that this one comes after in some position.
  std::vector<Stream*> known_streams() const;

 private:
  // Work from ticket `from` on comes after ticket `after` of another stream.
  struct Known {
    std::uint64_t from = 0;
    std::uint64_t after = 0;
  };
  // Both numbers ascend.
  using History = std::vector<Known>;

  void note(Stream* stream, std::uint64_t after);
  static std::uint64_t known_at(const History& history, std::uint64_t ticket);

  Device& device_;
  const StreamRole role_;
  // Used by the host thread only.
  std::unordered_map<Stream*, History> known_;  // by other stream
  std::uint64_t host_knows_ = 0;
};

// Nanoseconds on the clock of the spans.
std::int64_t now_ns();

}  // namespace weft::tensor
