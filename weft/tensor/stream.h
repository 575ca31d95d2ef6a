// A stream runs work in the order it was enqueued. Streams run beside each other; events order
// them.
//
// The host thread of a rank enqueues; it alone calls these functions, unless said otherwise. A
// stream keeps its first error: work after it is skipped, and every later wait on the stream (by
// the host or by another stream) throws that error with the label of the work that failed.
//
// What computes is enqueued through the operations of the stream's device (kernels/kernels.h); the
// streams of a device have further functions for those, in the folder of that device.
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

#include "weft/base/bell.h"
#include "weft/tensor/device.h"
#include "weft/tensor/work.h"

namespace weft::tensor {

class Stream;
class Transfers;

// A position in a stream: everything enqueued before it was recorded.
struct Event {
  Stream* stream = nullptr;  // none: an event that is already over
  std::uint64_t ticket = 0;
};

// One executed piece of work, recorded while tracing. Times are of std::chrono::steady_clock.
struct WorkSpan {
  std::string_view label;  // of the node that enqueued it; lives as long as the stream
  std::string_view name;   // of the operation
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

// Work of the host in a stream's order; see Stream::enqueue_host.
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

  // Copies between the host's memory, which must stay until the copy is over, and the device's. The
  // typed functions of tensor/transfer.h are the way to call them.
  virtual void upload(std::byte* to, const std::byte* from, std::int64_t bytes) = 0;
  void download(std::byte* to, const std::byte* from, std::int64_t bytes) {
    download_all({{.to = to, .from = from, .bytes = bytes}});
  }
  // All of them, in any order.
  virtual void download_all(std::vector<Download> all) = 0;

  // Runs `work` in the stream's order, on a thread that is not the host's (or at once, where the
  // stream is Alone). It may block, as a meeting of ranks does; what it throws is the stream's
  // error. `name` must outlive the stream's work (a literal).
  virtual void enqueue_host(std::string_view name,
                            WorkClass kind,
                            HostWork work,
                            WorkSize size = {}) = 0;

  // The end of what is enqueued so far.
  virtual Event record() = 0;
  // Work enqueued from now on starts after the event. Throws only in a stream that is Alone.
  virtual void wait(const Event& event) = 0;
  // The host waits for an event of this stream; throws the stream's error.
  virtual void host_wait(const Event& event) = 0;
  void synchronize() { host_wait(record()); }

  // Whether work enqueued on this stream from now on starts after the event, going by what it was
  // told to wait for, what that had waited for, and so on: a matter of the order of calls, never of
  // timing.
  bool knows(const Event& event) const;
  // The event is over before whatever is enqueued from now on, as the caller knows from elsewhere
  // (a message that is only sent after it).
  void learn(const Event& event);
  // Whether the host has waited for that ticket of this stream, or for something after it:
  // everything enqueued anywhere from then on is after it.
  bool host_knows(std::uint64_t ticket) const { return host_knows_ >= ticket; }

  // The ticket the next enqueued work will have.
  virtual std::uint64_t next_ticket() const = 0;
  virtual bool reached(std::uint64_t ticket) const = 0;
  // The error the stream keeps, as far as it is known now. Any thread may ask.
  virtual std::exception_ptr error() const = 0;
  // For the threads of other streams: sleeps on `bell`, which is the caller's own, until the ticket
  // is over; returns the stream's error.
  virtual std::exception_ptr await(std::uint64_t ticket,
                                   const std::shared_ptr<base::Bell>& bell) = 0;

  // `tell` is called once, by the thread that runs the work, as soon as the stream has an error.
  virtual void on_failure(std::function<void(const std::exception_ptr&)> tell) = 0;

  // The node all following work belongs to.
  virtual void set_label(std::string_view label) = 0;

  virtual void start_recording() = 0;
  // Stops recording and returns what was recorded; call after synchronize().
  virtual std::vector<WorkSpan> take_recording() = 0;

 protected:
  // The host has waited for that ticket.
  void host_learns(std::uint64_t ticket);
  // The streams that something is known of.
  std::vector<Stream*> known_streams() const;

 private:
  // Work from the ticket `from` on comes after the ticket `after` of another stream.
  struct Known {
    std::uint64_t from = 0;
    std::uint64_t after = 0;
  };
  // Both grow from entry to entry.
  using History = std::vector<Known>;

  void note(Stream* stream, std::uint64_t after);
  static std::uint64_t known_at(const History& history, std::uint64_t ticket);

  Device& device_;
  const StreamRole role_;
  // Of the host's thread.
  std::unordered_map<Stream*, History> known_;  // by other stream
  std::uint64_t host_knows_ = 0;
};

// Nanoseconds of the clock that spans are in.
std::int64_t now_ns();

}  // namespace weft::tensor
