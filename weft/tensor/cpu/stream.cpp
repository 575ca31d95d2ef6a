#include "weft/tensor/stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "weft/base/bell.h"
#include "weft/base/check.h"
#include "weft/base/cores.h"
#include "weft/base/error_context.h"
#include "weft/tensor/workers.h"

namespace weft::tensor {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

// The error being handled, named for the work that failed.
std::exception_ptr with_label(std::string_view label, std::string_view name) {
  try {
    base::throw_at(label.empty() ? std::string(name) : base::text("{} ({})", label, name),
                   std::current_exception());
  } catch (...) {
    return std::current_exception();
  }
}

class CpuStream final : public Stream {
 public:
  CpuStream(std::string name, int threads, StreamMode mode) : name_(std::move(name)) {
    if (mode == StreamMode::Inline) {
      workers_.emplace(threads);
      return;
    }
    thread_ = std::thread([this, mode, threads] {
      if (mode == StreamMode::Prompt) base::wake_promptly();
      if (mode == StreamMode::Yielding) base::give_way();
      workers_.emplace(threads);  // their threads are like this one
      serve();
    });
  }

  ~CpuStream() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    pushed_.ring();
    if (thread_.joinable()) thread_.join();
  }

  void enqueue(std::string_view name, WorkClass kind, Task task, WorkSize size) override {
    push({.label = label_,
          .name = name,
          .kind = kind,
          .task = leave_out_ ? Task() : std::move(task),
          .size = size,
          .awaited = std::exchange(awaited_, {})});
  }

  Event record() override {
    // Waits belong to the next work; where there is none yet, an empty one carries them.
    if (!awaited_.empty())
      push({.label = label_, .name = "wait", .awaited = std::exchange(awaited_, {})});
    return {this, next_ticket_ - 1};
  }

  void wait(const Event& event) override {
    if (event.stream == nullptr || event.stream == this) return;
    std::uint64_t& known = known_[event.stream];
    known = std::max(known, event.ticket);
    if (event.stream->reached(event.ticket) && !failed_elsewhere(event)) return;
    if (thread_.joinable()) {
      awaited_.push_back(event);
    } else {
      event.stream->host_wait(event);
    }
  }

  void host_wait(const Event& event) override {
    CHECK(event.stream == this, "an event of another stream than '{}'", name_);
    const std::exception_ptr error = wait_for(event.ticket, host_waking_);
    host_knows_ = std::max(host_knows_, event.ticket);
    if (error) std::rethrow_exception(error);
  }

  bool knows(const Event& event) const override {
    if (event.stream == nullptr || event.stream == this) return true;
    if (static_cast<const CpuStream*>(event.stream)->host_knows_ >= event.ticket) return true;
    const auto known = known_.find(event.stream);
    return known != known_.end() && known->second >= event.ticket;
  }

  std::uint64_t next_ticket() const override { return next_ticket_; }

  bool reached(std::uint64_t ticket) const override {
    return completed_.load(std::memory_order_acquire) >= ticket;
  }

  void set_label(std::string_view label) override {
    // Kept for the stream's life: errors and spans refer to it after the caller's text is gone.
    label_ = *labels_.emplace(label).first;
  }

  void on_failure(std::function<void(const std::exception_ptr&)> tell) override {
    synchronize();
    tell_ = std::move(tell);
  }

  void leave_out_work(bool leave_out) override { leave_out_ = leave_out; }

  void start_recording() override {
    synchronize();
    spans_.clear();
    recording_.store(true);
  }

  std::vector<WorkSpan> take_recording() override {
    recording_.store(false);
    return std::exchange(spans_, {});
  }

  const std::string& name() const override { return name_; }

  // Returns the stream's error once `ticket` is over; the caller sleeps on `bell` until then.
  std::exception_ptr wait_for(std::uint64_t ticket, const std::shared_ptr<base::Bell>& bell) {
    while (true) {
      const std::uint32_t seen = bell->count();
      {
        const std::lock_guard lock(mutex_);
        if (reached(ticket)) return error_;
        if (std::ranges::find(sleepers_, bell, &Sleeper::bell) == sleepers_.end()) {
          sleepers_.push_back({ticket, bell});
        }
      }
      bell->wait(seen);
    }
  }

 private:
  struct Item {
    std::string_view label;
    std::string_view name;
    WorkClass kind = WorkClass::Memory;
    Task task = {};  // empty: only waits
    WorkSize size = {};
    std::vector<Event> awaited = {};  // what must be over first
  };

  // Who waits for what; nobody is woken for less. A thread that goes first and is interrupted by
  // one that has nothing to do yet may not get its core back before one that gives way.
  struct Sleeper {
    std::uint64_t ticket = 0;
    std::shared_ptr<base::Bell> bell;  // may ring when its owner has gone on and ended
  };

  static bool failed_elsewhere(const Event& event) {
    auto* other = static_cast<CpuStream*>(event.stream);
    const std::lock_guard lock(other->mutex_);
    return other->error_ != nullptr;
  }

  void push(Item item) {
    ++next_ticket_;
    if (!thread_.joinable()) {
      if (!error_) run(item);
      completed_.store(next_ticket_ - 1, std::memory_order_release);
      if (error_) std::rethrow_exception(error_);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(item));
    }
    pushed_.ring();
  }

  void serve() {
    while (true) {
      const std::uint32_t seen = pushed_.count();
      std::optional<Item> item;
      bool skip = false;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.empty() && stopping_) return;
        skip = error_ != nullptr;
        if (!queue_.empty()) {
          item = std::move(queue_.front());
          queue_.pop_front();
        }
      }
      if (!item) {
        pushed_.wait(seen);
        continue;
      }
      if (!skip) run(*item);
      item.reset();
      for (const std::shared_ptr<base::Bell>& bell : complete()) bell->ring();
    }
  }

  // One more piece of work is over; those who waited for it.
  std::vector<std::shared_ptr<base::Bell>> complete() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = completed_.load(std::memory_order_relaxed) + 1;
    completed_.store(now, std::memory_order_release);
    std::vector<std::shared_ptr<base::Bell>> awake;
    std::erase_if(sleepers_, [&](const Sleeper& sleeper) {
      if (sleeper.ticket <= now) awake.push_back(sleeper.bell);
      return sleeper.ticket <= now;
    });
    return awake;
  }

  // Runs on the serving thread (or inline); only this thread writes error_ and spans_.
  void run(const Item& item) {
    try {
      for (const Event& event : item.awaited) {
        const std::exception_ptr error =
            static_cast<CpuStream*>(event.stream)->wait_for(event.ticket, waking_);
        if (error) return fail(error);
      }
      if (!item.task) return;
      const bool record = recording_.load(std::memory_order_relaxed);
      const std::int64_t begin = record ? now_ns() : 0;
      item.task(*workers_);
      if (record) {
        spans_.push_back({.label = item.label,
                          .name = item.name,
                          .kind = item.kind,
                          .begin_ns = begin,
                          .end_ns = now_ns(),
                          .size = item.size});
      }
    } catch (...) {
      fail(with_label(item.label, item.name));
    }
  }

  void fail(const std::exception_ptr& error) {
    {
      const std::lock_guard lock(mutex_);
      if (error_) return;
      error_ = error;
    }
    if (tell_) tell_(error);
  }

  const std::string name_;
  std::function<void(const std::exception_ptr&)> tell_;  // of the first error; set while idle
  std::optional<Workers> workers_;                       // of the serving thread
  std::string_view label_;                               // host thread only, like the next six
  bool leave_out_ = false;
  std::unordered_map<const Stream*, std::uint64_t> known_;  // of other streams, what is before
  std::uint64_t host_knows_ = 0;                            // of this stream: nobody is before it
  std::unordered_set<std::string> labels_;
  std::uint64_t next_ticket_ = 1;
  std::vector<Event> awaited_;  // waits for the next work
  std::mutex mutex_;
  base::Bell pushed_;  // work was enqueued
  // What the serving thread waits for elsewhere is over; what the host waits for here is.
  const std::shared_ptr<base::Bell> waking_ = std::make_shared<base::Bell>();
  const std::shared_ptr<base::Bell> host_waking_ = std::make_shared<base::Bell>();
  std::vector<Sleeper> sleepers_;
  std::deque<Item> queue_;
  std::atomic<std::uint64_t> completed_{0};  // the last ticket that is over
  std::exception_ptr error_;
  bool stopping_ = false;
  std::atomic<bool> recording_{false};
  std::vector<WorkSpan> spans_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Stream> make_cpu_stream(std::string name, int threads, StreamMode mode) {
  return std::make_unique<CpuStream>(std::move(name), threads, mode);
}

}  // namespace weft::tensor
