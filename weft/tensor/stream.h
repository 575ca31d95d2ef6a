// A stream runs work in the order it was enqueued. Streams run beside each other; events order
// them.
//
// The host thread of a rank enqueues; it alone calls these functions. A stream keeps its first
// error: work after it is skipped, and every later wait on the stream (by the host or by another
// stream) throws that error with the label of the work that failed.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::tensor {

class Workers;
class Stream;

// What kind of work something is; `hidden_gemm` counts Gemm and Attention.
enum class WorkClass { Gemm, Attention, Memory, Copy, Communication };

// A position in a stream: everything enqueued before it was recorded.
struct Event {
  Stream* stream = nullptr;  // none: an event that is already over
  std::uint64_t ticket = 0;
};

// How much a piece of work moves and who takes part in it; for the trace.
struct WorkSize {
  std::int64_t bytes = 0;          // sent to other ranks
  std::int64_t rows = 0;           // sent to other ranks, or put through the experts
  std::span<const int> members{};  // communication: the world ranks that take part, this one
                                   // included; outlives the stream's work
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

class Stream {
 public:
  using Task = std::function<void(Workers&)>;

  virtual ~Stream() = default;

  // `name` must outlive the stream's work (a literal).
  virtual void enqueue(std::string_view name, WorkClass kind, Task task, WorkSize size = {}) = 0;

  // The end of what is enqueued so far.
  virtual Event record() = 0;
  // Work enqueued from now on starts after the event. Throws only in an inline stream.
  virtual void wait(const Event& event) = 0;
  // The host waits for an event of this stream; throws the stream's error.
  virtual void host_wait(const Event& event) = 0;
  void synchronize() { host_wait(record()); }

  // Whether work enqueued on this stream from now on starts after the event, going by what it was
  // told to wait for: a matter of the order of calls, never of timing.
  virtual bool knows(const Event& event) const = 0;

  // The ticket the next enqueued work will have.
  virtual std::uint64_t next_ticket() const = 0;
  virtual bool reached(std::uint64_t ticket) const = 0;

  // `tell` is called once, by the thread that runs the work, as soon as the stream has an error.
  virtual void on_failure(std::function<void(const std::exception_ptr&)> tell) = 0;

  // The node all following work belongs to.
  virtual void set_label(std::string_view label) = 0;

  // From now on work keeps its place and its waits, but is not done: to see what is left of a step
  // without it.
  virtual void leave_out_work(bool leave_out) = 0;

  virtual void start_recording() = 0;
  // Stops recording and returns what was recorded; call after synchronize().
  virtual std::vector<WorkSpan> take_recording() = 0;

  virtual const std::string& name() const = 0;
};

// Threaded: a FIFO served by its own thread. Prompt: with a thread that mostly waits, and whose
// sleeps end on time. Yielding: with a thread that runs only while no other wants its core. Inline:
// work runs inside enqueue, for graphs of one lane.
enum class StreamMode { Threaded, Prompt, Yielding, Inline };

std::unique_ptr<Stream> make_cpu_stream(std::string name, int threads, StreamMode mode);

// Nanoseconds of the clock that spans are in.
std::int64_t now_ns();

}  // namespace weft::tensor
