#include "weft/tensor/cpu/stream.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <typeinfo>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/error_context.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/parallel/thread.h"

namespace weft::tensor::cpu {
namespace {

// Current exception, with the name of the failed work.
std::exception_ptr with_label(std::string_view label, std::string_view name) {
  try {
    base::throw_at(label.empty() ? std::string(name) : base::text("{} ({})", label, name),
                   std::current_exception());
  } catch (...) {
    return std::current_exception();
  }
}

bool is_prompt(StreamRole role) {
  return role == StreamRole::Communication || role == StreamRole::Copy;
}

// Smaller parts are not worth another thread.
constexpr std::int64_t kLeastPart = 256 << 10;

// From this size on, caches would evict the copied data before it is read.
constexpr std::int64_t kMuch = 64 << 20;

// Copies with one part for each thread.
void copy_in_parts(Workers& workers, Transfers& transfers, const std::vector<Download>& all) {
  std::int64_t total = 0;
  for (const Download& one : all) total += one.bytes;
  const auto copy = total < kMuch ? &Transfers::copy : &Transfers::copy_away;
  const std::int64_t part = std::max(kLeastPart, total / workers.threads() + 1);
  // A part is a byte range of all copies laid end to end.
  workers.parallel((total + part - 1) / part, [&](std::int64_t i) {
    std::int64_t begin = i * part, left = std::min(part, total - begin);
    for (const Download& one : all) {
      if (left == 0) return;
      if (begin >= one.bytes) {
        begin -= one.bytes;
        continue;
      }
      const std::int64_t bytes = std::min(left, one.bytes - begin);
      (transfers.*copy)(one.to + begin, one.from + begin, bytes);
      left -= bytes;
      begin = 0;
    }
  });
}

}  // namespace

CpuStream& cpu_stream(Stream& stream) {
  CHECK(typeid(stream) == typeid(CpuStream),
        "stream '{}' of the device '{}' where one of the CPU is needed",
        stream.name(),
        stream.device().name());
  return static_cast<CpuStream&>(stream);
}

CpuStream::CpuStream(CpuDevice& device, std::string name, int threads, StreamRole role)
    : Stream(device, role),
      cpu_(device),
      transfers_(device.make_transfers()),
      name_(std::move(name)) {
  if (role == StreamRole::Alone) {
    workers_.emplace(threads);
    return;
  }
  std::promise<void> promise;
  std::future<void> ready = promise.get_future();
  thread_ = base::start_thread(base::text("the thread of stream '{}'", name_),
                               [this, role, threads, promise = std::move(promise)]() mutable {
                                 if (is_prompt(role)) base::wake_promptly();
                                 if (role == StreamRole::ComputeOnOwnCores) base::give_way();
                                 try {
                                   workers_.emplace(threads);  // their threads run like this one
                                 } catch (...) {
                                   return promise.set_exception(std::current_exception());
                                 }
                                 promise.set_value();
                                 serve();
                               });
  try {
    ready.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

CpuStream::~CpuStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  pushed_.ring();
  if (thread_.joinable()) thread_.join();
}

void CpuStream::enqueue(std::string_view name, WorkClass kind, Task task, WorkSize size) {
  push({.label = label_,
        .name = name,
        .kind = kind,
        .task = std::move(task),
        .size = size,
        .awaited = std::exchange(awaited_, {})});
}

void CpuStream::enqueue_host(std::string_view name, WorkClass kind, HostWork work, WorkSize size) {
  push({.label = label_,
        .name = name,
        .kind = kind,
        .host_work = std::move(work),
        .size = size,
        .awaited = std::exchange(awaited_, {})});
}

// Either end may be host memory.
void CpuStream::upload(std::byte* to, const std::byte* from, std::int64_t bytes) {
  enqueue("upload", WorkClass::Copy, [=, this](Workers& workers) {
    copy_in_parts(workers, *transfers_, {{.to = to, .from = from, .bytes = bytes}});
  });
}

void CpuStream::download_all(std::vector<Download> all) {
  enqueue("download", WorkClass::Copy, [all = std::move(all), this](Workers& workers) {
    copy_in_parts(workers, *transfers_, all);
  });
}

Event CpuStream::record() {
  // Waits belong to the next work; without one, an empty item carries them. Waits for complete
  // events count too: a stream that follows this one must learn the same, however fast others were.
  if (waited_) push({.label = label_, .name = "wait", .awaited = std::exchange(awaited_, {})});
  return {this, next_ticket_ - 1};
}

void CpuStream::wait(const Event& event) {
  if (event.stream == nullptr || event.stream == this) return;
  learn(event);
  waited_ = true;
  if (event.stream->reached(event.ticket) && event.stream->error() == nullptr) return;
  if (thread_.joinable()) {
    awaited_.push_back(event);
  } else {
    event.stream->host_wait(event);
  }
}

void CpuStream::host_wait(const Event& event) {
  CHECK(event.stream == this, "an event of another stream than '{}'", name_);
  const std::exception_ptr error = await(event.ticket, host_waking_);
  host_learns(event.ticket);
  if (error) std::rethrow_exception(error);
}

std::exception_ptr CpuStream::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::exception_ptr CpuStream::await(std::uint64_t ticket, const std::shared_ptr<base::Bell>& bell) {
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

void CpuStream::on_failure(std::function<void(const std::exception_ptr&)> tell) {
  synchronize();
  tell_ = std::move(tell);
}

void CpuStream::set_label(std::string_view label) {
  // Kept for the stream's life: errors and spans refer to the label after the caller's text is
  // gone.
  label_ = *labels_.emplace(label).first;
}

void CpuStream::start_recording() {
  synchronize();
  spans_.clear();
  recording_.store(true);
}

std::vector<WorkSpan> CpuStream::take_recording() {
  recording_.store(false);
  return std::exchange(spans_, {});
}

void CpuStream::push(Item item) {
  ++next_ticket_;
  waited_ = false;
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

void CpuStream::serve() {
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

// Marks one more piece of work as complete; returns the bells of its waiters.
std::vector<std::shared_ptr<base::Bell>> CpuStream::complete() {
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
void CpuStream::run(const Item& item) {
  try {
    for (const Event& event : item.awaited) {
      const std::exception_ptr error = event.stream->await(event.ticket, waking_);
      if (error) return fail(error);
    }
    if (!item.task && !item.host_work) return;
    const bool record = recording_.load(std::memory_order_relaxed);
    const std::int64_t begin = record ? now_ns() : 0;
    item.task ? item.task(*workers_) : item.host_work(*transfers_);
    if (const std::optional<Fault> fault = fault_in(fault_)) throw_fault(*fault);
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

void CpuStream::fail(const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = error;
  }
  if (tell_) tell_(error);
}

}  // namespace weft::tensor::cpu
