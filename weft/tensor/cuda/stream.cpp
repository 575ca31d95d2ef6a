#include "weft/tensor/cuda/stream.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstring>
#include <typeinfo>
#include <utility>

#include "weft/base/check.h"
#include "weft/base/error_context.h"

namespace weft::tensor::cuda {
namespace {

// Largest copy of pageable memory that is staged; larger ones are copied directly.
constexpr std::int64_t kStaged = 4 << 20;

constexpr int kComparisons = 20;  // comparisons of the two clocks; the tightest counts

int priority_of(StreamRole role) {
  int least = 0, greatest = 0;
  check("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &greatest));
  const bool first = role == StreamRole::Communication || role == StreamRole::Copy;
  return first ? greatest : least;
}

bool is_pinned(const std::byte* memory) {
  cudaPointerAttributes attributes{};
  check("cudaPointerGetAttributes", cudaPointerGetAttributes(&attributes, memory));
  return attributes.type != cudaMemoryTypeUnregistered;
}

// Joins copies that are contiguous on both sides.
void join_neighbours(std::vector<Download>& all) {
  std::vector<Download> joined;
  for (const Download& one : all) {
    Download* last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && last->to + last->bytes == one.to &&
        last->from + last->bytes == one.from) {
      last->bytes += one.bytes;
    } else {
      joined.push_back(one);
    }
  }
  all = std::move(joined);
}

// Opens a profiler range: the node, or the operation if there is no node.
void begin_range(const WorkSpan& span) {
  nvtxRangePushA(span.label.empty() ? span.name.data() : span.label.data());
}

// Current exception, with the place of the failed work.
std::exception_ptr named_for(const std::string& place) {
  try {
    base::throw_at(place, std::current_exception());
  } catch (...) {
    return std::current_exception();
  }
}

std::string place_text(const WorkSpan& span) {
  return span.label.empty() ? std::string(span.name) : base::text("{} ({})", span.label, span.name);
}

}  // namespace

CudaStream& cuda_stream(Stream& stream) {
  CHECK(typeid(stream) == typeid(CudaStream),
        "stream '{}' of the device '{}' where one of a GPU is needed",
        stream.name(),
        stream.device().name());
  return static_cast<CudaStream&>(stream);
}

CudaStream::CudaStream(CudaDevice& device, std::string name, StreamRole role)
    : Stream(device, role),
      cuda_(device),
      name_(std::move(name)),
      transfers_(device),
      staging_(device),
      issuer_(device) {
  check("cudaStreamCreateWithPriority",
        cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, priority_of(role)));
  transfers_.use(handle_);
  std::byte* place = device.take(Memory::HostVisible, sizeof(FaultWord));
  fault_ = new (place) FaultWord;
}

CudaStream::~CudaStream() {
  issuer_.stop();
  cudaStreamSynchronize(handle_);
  held_.clear();
  cudaStreamDestroy(handle_);
  cuda_.give_back(Memory::HostVisible, reinterpret_cast<std::byte*>(fault_), sizeof *fault_);
  if (workspace_ != nullptr) cuda_.give_back(Memory::Device, workspace_, kWorkspaceBytes);
}

std::byte* CudaStream::workspace(std::int64_t bytes) {
  CHECK(bytes <= kWorkspaceBytes, "a workspace of {} bytes", bytes);
  if (workspace_ == nullptr) workspace_ = cuda_.take(Memory::Device, kWorkspaceBytes);
  return workspace_;
}

CudaStream::Work CudaStream::next_work(std::string_view name,
                                       WorkClass kind,
                                       const WorkSize& size) {
  return {next_ticket_++, {.label = label_, .name = name, .kind = kind, .size = size}, recording_};
}

void CudaStream::enqueue_launch(std::string_view name,
                                WorkClass kind,
                                const Launch& launch,
                                const WorkSize& size) {
  const Work work = next_work(name, kind, size);
  const auto now = [&] { perform(work, [&] { launch(handle_); }); };
  const auto later = [&] {
    return [this, work, kept = std::shared_ptr<const Launch>(launch.kept())] {
      perform(work, [&] { (*kept)(handle_); });
    };
  };
  issuer_.run(work.ticket, now, later);
  throw_if_alone();
}

void CudaStream::perform(const Work& work, const std::function<void()>& launch) {
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back(work);
    if (error_) return;
  }
  begin_range(work.span);
  try {
    TimedWork timed{.span = work.span};
    if (work.timed) {
      timed.end = timing_.take();
      if (!begins_with_end_before()) {
        timed.begin = timing_.take();
        check("cudaEventRecord", cudaEventRecord(timed.begin, handle_));
      }
    }
    launch();
    // Launch errors; errors of the work itself appear when the host waits.
    check(work.span.name, cudaGetLastError());
    if (work.timed) {
      check("cudaEventRecord", cudaEventRecord(timed.end, handle_));
      timed_.push_back(timed);
      follows_timed_ = true;
    }
  } catch (...) {
    fail(named_for(place_text(work.span)));
  }
  nvtxRangePop();
}

// An event between two operations idles the GPU longer than their transition needs. Work that is
// issued while its predecessor runs, and waits for nothing else, begins when the predecessor ends.
// If the GPU is idle, the begin is recorded: the host was late.
bool CudaStream::begins_with_end_before() {
  if (!std::exchange(follows_timed_, false)) return false;
  const bool runs = cudaEventQuery(timed_.back().end) == cudaErrorNotReady;
  if (runs) cudaGetLastError();  // clears cudaErrorNotReady
  return runs;
}

void CudaStream::throw_if_alone() {
  if (role() != StreamRole::Alone) return;
  if (const std::exception_ptr failed = error()) std::rethrow_exception(failed);
}

void CudaStream::upload(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0 && bytes <= kStaged && !is_pinned(from)) {
    std::byte* staged = staging_.take(bytes, next_ticket_);
    std::memcpy(staged, from, std::size_t(bytes));
    from = staged;
  }
  enqueue("upload", WorkClass::Copy, [=](cudaStream_t stream) {
    check("cudaMemcpyAsync",
          cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDefault, stream));
  });
}

void CudaStream::download_all(std::vector<Download> all) {
  join_neighbours(all);
  for (Download& one : all) {
    if (one.bytes > 0 && one.bytes <= kStaged && !is_pinned(one.to))
      one.to = staging_.take_for(one.to, one.bytes, next_ticket_);
  }
  enqueue("download", WorkClass::Copy, [all = std::move(all)](cudaStream_t stream) {
    for (const Download& one : all) {
      check("cudaMemcpyAsync",
            cudaMemcpyAsync(one.to, one.from, std::size_t(one.bytes), cudaMemcpyDefault, stream));
    }
  });
}

void CudaStream::enqueue_host(std::string_view name, WorkClass kind, HostWork work, WorkSize size) {
  record_work();  // see wait()
  const Work host = next_work(name, kind, size);
  std::vector<const CudaStream*> waited_for;
  for (Stream* stream : known_streams()) waited_for.push_back(&cuda_stream(*stream));
  const auto task = [this, host, work = std::move(work), waited_for = std::move(waited_for)] {
    perform_host(host, work, waited_for);
  };
  if (role() == StreamRole::Alone) {
    issuer_.run(host.ticket, task);
    look_for_faults();
    throw_if_alone();
  } else {
    issuer_.push(host.ticket, task);
  }
}

// After an error, of this stream or of one it waited for, no work runs; the host learns of the
// error when it waits.
void CudaStream::perform_host(const Work& work,
                              const HostWork& host_work,
                              const std::vector<const CudaStream*>& waited_for) {
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back(work);
  }
  follows_timed_ = false;
  if (cudaStreamSynchronize(handle_) != cudaSuccess) return;  // thrown where the host waits
  const auto went_wrong = [](const CudaStream* stream) { return stream->went_wrong(); };
  if (went_wrong(this) || std::ranges::any_of(waited_for, went_wrong)) return;
  begin_range(work.span);
  try {
    WorkSpan span = work.span;
    span.begin_ns = now_ns();
    host_work(transfers_);
    span.end_ns = now_ns();
    if (work.timed) host_spans_.push_back(span);
  } catch (...) {
    fail(named_for(place_text(work.span)));
  }
  nvtxRangePop();
}

Event CudaStream::record() {
  // A wait is a position too: a stream that follows this one follows what it waited for.
  if (std::exchange(waited_, false)) ++next_ticket_;
  return record_work();
}

// Records the end of the work so far, without the waits behind it. It takes no ticket: an operation
// may wait between naming its memory, by its future ticket, and being enqueued.
Event CudaStream::record_work() {
  const std::uint64_t ticket = next_ticket_ - 1;
  if (ticket > last_recorded_) {
    last_recorded_ = ticket;
    issuer_.run(ticket, [this, ticket] { mark(ticket); });
  }
  return {this, ticket};
}

void CudaStream::mark(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  add_mark(ticket);
}

// Records the end of the issued work. nullptr: after a GPU error, which is thrown where the host
// waits.
cudaEvent_t CudaStream::add_mark(std::uint64_t ticket) const {
  const cudaEvent_t event = events_.take();
  if (event == nullptr) return nullptr;
  cudaEventRecord(event, handle_);
  marks_.push_back({ticket, event});
  return event;
}

// First recorded position at or after `ticket`, which is issued; nullptr: after an error.
cudaEvent_t CudaStream::event_covering(std::uint64_t ticket) const {
  const auto found = std::ranges::lower_bound(marks_, ticket, {}, &Mark::ticket);
  return found == marks_.end() ? add_mark(ticket) : found->event;
}

void CudaStream::wait(const Event& event) {
  if (event.stream == nullptr || event.stream == this) return;
  if (event.stream->reached(event.ticket)) {
    waited_ = true;  // followers of this stream learn the same, however fast others were
    return learn(event);
  }
  // A position requested before this wait must not lie behind it. The awaited work may depend, on
  // another rank, on the requester: an order that no schedule contains.
  const std::uint64_t ticket = record_work().ticket;
  learn(event);
  waited_ = true;
  CudaStream& other = cuda_stream(*event.stream);
  const auto task = [this, &other, awaited = event.ticket] { wait_on_card(other, awaited); };
  if (other.issuer_.has_issued(event.ticket)) {
    issuer_.run(ticket, task);
  } else {
    issuer_.push(ticket, task);
  }
}

void CudaStream::wait_on_card(CudaStream& other, std::uint64_t ticket) {
  other.issuer_.await_issued(ticket);
  const std::lock_guard lock(other.mutex_);
  if (other.completed_ >= ticket) return;
  const cudaEvent_t event = other.event_covering(ticket);
  if (event == nullptr) {
    cudaStreamSynchronize(other.handle_);  // no events are left: the thread waits
  } else {
    follows_timed_ = false;
    cudaStreamWaitEvent(handle_, event, 0);
  }
}

void CudaStream::host_wait(const Event& event) {
  CHECK(event.stream == this, "an event of another stream than '{}'", name_);
  issuer_.await_issued(event.ticket);
  if (!reached(event.ticket)) {
    cudaEvent_t covering = nullptr;
    {
      const std::lock_guard lock(mutex_);
      covering = event_covering(event.ticket);
    }
    const cudaError_t error =
        covering == nullptr ? cudaStreamSynchronize(handle_) : cudaEventSynchronize(covering);
    if (error != cudaSuccess && !is_failed()) {
      try {
        throw_cuda("cudaEventSynchronize", error);
      } catch (...) {
        fail(named_for(place_of(event.ticket)));
      }
    }
  }
  look_for_faults();
  look_outside();
  look_at_known_streams();
  if (const std::exception_ptr failed = this->error()) std::rethrow_exception(failed);
  host_learns(event.ticket);
  staging_.pass(event.ticket);
}

bool CudaStream::reached(std::uint64_t ticket) const {
  if (!issuer_.has_issued(ticket)) return false;
  const std::lock_guard lock(mutex_);
  while (completed_ < ticket && !marks_.empty() &&
         cudaEventQuery(marks_.front().event) == cudaSuccess) {
    completed_ = std::max(completed_, marks_.front().ticket);
    events_.give(marks_.front().event);
    marks_.pop_front();
  }
  // Keep work whose fault is still to be named.
  while (!pending_.empty() && pending_.front().ticket <= completed_ && !fault_in(*fault_)) {
    pending_.pop_front();
  }
  return completed_ >= ticket;
}

void CudaStream::look_for_faults() {
  const std::optional<Fault> fault = fault_in(*fault_);
  if (!fault || is_failed()) return;
  try {
    throw_fault(*fault);
  } catch (...) {
    fail(named_for(place_of(fault->ticket)));
  }
}

std::uint64_t CudaStream::last_issued() const {
  const std::lock_guard lock(mutex_);
  return pending_.empty() ? 0 : pending_.back().ticket;
}

void CudaStream::look_outside() {
  for (const auto& outside : outside_) {
    const std::exception_ptr error = outside->error();
    if (!error || is_failed()) continue;
    try {
      std::rethrow_exception(error);
    } catch (...) {
      fail(named_for(place_of(last_issued())));
    }
  }
}

// A failure of a stream that this one waited for is this stream's failure too.
void CudaStream::look_at_known_streams() {
  for (Stream* stream : known_streams()) {
    if (is_failed()) return;
    CudaStream& other = cuda_stream(*stream);
    other.look_for_faults();
    other.look_outside();
    if (const std::exception_ptr failed = other.error()) fail(failed);
  }
}

std::string CudaStream::place_of(std::uint64_t ticket) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(pending_, ticket, &Work::ticket);
  return found == pending_.end() ? name_ : place_text(found->span);
}

bool CudaStream::went_wrong() const { return is_failed() || fault_in(*fault_).has_value(); }

bool CudaStream::is_failed() const { return error() != nullptr; }

std::exception_ptr CudaStream::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::exception_ptr CudaStream::await(std::uint64_t ticket, const std::shared_ptr<base::Bell>&) {
  issuer_.await_issued(ticket);
  cudaStreamSynchronize(handle_);
  return error();
}

void CudaStream::on_failure(std::function<void(const std::exception_ptr&)> tell) {
  synchronize();
  const std::lock_guard lock(mutex_);
  tell_ = std::move(tell);
}

void CudaStream::fail(const std::exception_ptr& error) {
  std::function<void(const std::exception_ptr&)> tell;
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = error;
    tell = tell_;
  }
  if (tell) tell(error);
}

void CudaStream::set_label(std::string_view label) {
  // Kept for the stream's life: errors and spans refer to the label after the caller's text is
  // gone.
  label_ = *labels_.emplace(label).first;
}

void CudaStream::start_recording() {
  synchronize();
  for (const TimedWork& work : std::exchange(timed_, {})) {
    if (work.begin != nullptr) timing_.give(work.begin);
    timing_.give(work.end);
  }
  follows_timed_ = false;
  if (anchor_ == nullptr) anchor_ = timing_.take();
  std::int64_t tightest = -1;
  for (int i = 0; i < kComparisons; ++i) {
    const cudaEvent_t event = timing_.take();
    const std::int64_t before = now_ns();
    check("cudaEventRecord", cudaEventRecord(event, handle_));
    check("cudaEventSynchronize", cudaEventSynchronize(event));
    const std::int64_t after = now_ns();
    if (tightest < 0 || after - before < tightest) {
      tightest = after - before;
      anchor_ns_ = before + tightest / 2;
      timing_.give(std::exchange(anchor_, event));
    } else {
      timing_.give(event);
    }
  }
  host_spans_.clear();
  recording_ = true;
}

std::vector<WorkSpan> CudaStream::take_recording() {
  recording_ = false;
  std::vector<WorkSpan> spans = std::exchange(host_spans_, {});
  const auto time_of = [&](cudaEvent_t event) {
    float milliseconds = 0;
    check("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, anchor_, event));
    return anchor_ns_ + static_cast<std::int64_t>(double(milliseconds) * 1e6);
  };
  std::int64_t end_before_ns = 0;
  for (TimedWork& work : std::exchange(timed_, {})) {
    work.span.begin_ns = work.begin == nullptr ? end_before_ns : time_of(work.begin);
    work.span.end_ns = end_before_ns = time_of(work.end);
    spans.push_back(work.span);
    if (work.begin != nullptr) timing_.give(work.begin);
    timing_.give(work.end);
  }
  std::ranges::sort(spans, {}, &WorkSpan::begin_ns);
  return spans;
}

}  // namespace weft::tensor::cuda
