// CPU stream: a queue of tasks served by a thread of its own, which shares parallel loops with its
// workers. An Alone stream has no thread: work runs inside enqueue.
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

#include "weft/base/parallel/bell.h"
#include "weft/tensor/cpu/device.h"
#include "weft/tensor/cpu/workers.h"
#include "weft/tensor/fault.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/transfers.h"

namespace weft::tensor::cpu {

using Task = std::function<void(Workers&)>;

class CpuStream final : public Stream {
 public:
  // Threads by role. Compute: a thread of its own. Communication: a thread that mostly waits and
  // wakes on time. Copy: as Communication, with workers. ComputeOnOwnCores: a thread that runs only
  // while no other thread wants its core. Workers run like their stream's thread.
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
    Task task = {};  // one of the two; neither: the item only waits
    HostWork host_work = {};
    WorkSize size = {};
    std::vector<Event> awaited = {};  // events that must be complete first
  };

  // A waiter and the ticket it waits for; no waiter is woken earlier. A thread woken without work
  // may interrupt a high-priority thread; a low-priority thread may then get the core first.
  struct Sleeper {
    std::uint64_t ticket = 0;
    std::shared_ptr<base::Bell> bell;  // may ring after its owner has gone on and ended
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
  std::function<void(const std::exception_ptr&)> tell_;  // told of the first error; set while idle
  std::optional<Workers> workers_;                       // workers of the serving thread
  std::string_view label_;  // this and the next three: host thread only
  std::unordered_set<std::string> labels_;
  std::uint64_t next_ticket_ = 1;
  std::vector<Event> awaited_;  // awaited by the next work
  bool waited_ = false;         // since the last work, also for complete events
  mutable std::mutex mutex_;
  base::Bell pushed_;  // rings when work was enqueued
  // Bells of the serving thread, waiting for other streams, and of the host, waiting for this one.
  const std::shared_ptr<base::Bell> waking_ = std::make_shared<base::Bell>();
  const std::shared_ptr<base::Bell> host_waking_ = std::make_shared<base::Bell>();
  std::vector<Sleeper> sleepers_;
  std::deque<Item> queue_;
  std::atomic<std::uint64_t> completed_{0};  // last ticket that is complete
  std::exception_ptr error_;
  bool stopping_ = false;
  std::atomic<bool> recording_{false};
  std::vector<WorkSpan> spans_;
  std::thread thread_;
};

// Casts a stream to a CPU stream; CHECKs that it is one.
CpuStream& cpu_stream(Stream& stream);

}  // namespace weft::tensor::cpu
