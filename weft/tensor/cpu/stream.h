// A stream of the CPU: a queue of tasks served by a thread of its own, which shares parallel loops
// with its workers. Alone, it has no thread: work runs inside enqueue.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "weft/base/bell.h"
#include "weft/tensor/cpu/device.h"
#include "weft/tensor/cpu/workers.h"
#include "weft/tensor/fault.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/transfers.h"

namespace weft::tensor::cpu {

using Task = std::function<void(Workers&)>;

class CpuStream final : public Stream {
 public:
  // Compute: a thread of its own. Communication: one that mostly waits, and whose sleeps end on
  // time. Copy: the same, with workers. ComputeOnOwnCores: one that runs only while no other wants
  // its core. Its workers are like it.
  CpuStream(CpuDevice& device, std::string name, int threads, StreamRole role);
  ~CpuStream() override;

  // `name` must outlive the stream's work (a literal).
  void enqueue(std::string_view name, WorkClass kind, Task task, WorkSize size = {});

  const CpuDevice& cpu() const { return cpu_; }
  FaultWord& fault() { return fault_; }

  const std::string& name() const override { return name_; }
  void upload(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void download_all(std::vector<Download> all) override;
  void enqueue_host(std::string_view name, WorkClass kind, HostWork work, WorkSize size) override;
  Event record() override;
  void wait(const Event& event) override;
  void host_wait(const Event& event) override;
  std::uint64_t next_ticket() const override { return next_ticket_; }
  bool reached(std::uint64_t ticket) const override {
    return completed_.load(std::memory_order_acquire) >= ticket;
  }
  std::exception_ptr error() const override;
  std::exception_ptr await(std::uint64_t ticket, const std::shared_ptr<base::Bell>& bell) override;
  void on_failure(std::function<void(const std::exception_ptr&)> tell) override;
  void set_label(std::string_view label) override;
  void start_recording() override;
  std::vector<WorkSpan> take_recording() override;

 private:
  struct Item {
    std::string_view label;
    std::string_view name;
    WorkClass kind = WorkClass::Memory;
    Task task = {};  // what to do: one of the two, or neither, where it only waits
    HostWork host_work = {};
    WorkSize size = {};
    std::vector<Event> awaited = {};  // what must be over first
  };

  // Who waits for what; nobody is woken for less. A thread that goes first and is interrupted by
  // one that has nothing to do yet may not get its core back before one that gives way.
  struct Sleeper {
    std::uint64_t ticket = 0;
    std::shared_ptr<base::Bell> bell;  // may ring when its owner has gone on and ended
  };

  void push(Item item);
  void serve();
  std::vector<std::shared_ptr<base::Bell>> complete();
  void run(const Item& item);
  void fail(const std::exception_ptr& error);

  CpuDevice& cpu_;
  const std::unique_ptr<Transfers> transfers_;
  FaultWord fault_;
  const std::string name_;
  std::function<void(const std::exception_ptr&)> tell_;  // of the first error; set while idle
  std::optional<Workers> workers_;                       // of the serving thread
  std::string_view label_;                               // host thread only, like the next three
  std::unordered_set<std::string> labels_;
  std::uint64_t next_ticket_ = 1;
  std::vector<Event> awaited_;  // waits for the next work
  bool waited_ = false;         // since the last work, also for what was over
  mutable std::mutex mutex_;
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

// The one place where a stream is taken for one of the CPU; CHECKs that it is.
CpuStream& cpu_stream(Stream& stream);

}  // namespace weft::tensor::cpu
