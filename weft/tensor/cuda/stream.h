// GPU stream: a CUDA stream, and a thread for work that must wait on the host (issuer.h).
//
// Positions are CUDA events, recorded by record(). A position without an event (a tensor's last
// use) is covered by the next event, or by one on request. Errors of the GPU (the fault word, a
// driver error) appear when the host waits. Streams that waited for each other fail together: each
// looks at the errors of the streams it waited for.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/tensor/cuda/device.h"
#include "weft/tensor/cuda/events.h"
#include "weft/tensor/cuda/issuer.h"
#include "weft/tensor/cuda/launch.h"
#include "weft/tensor/cuda/staging.h"
#include "weft/tensor/cuda/transfers.h"
#include "weft/tensor/fault.h"
#include "weft/tensor/stream.h"

namespace weft::tensor::cuda {

// Outside source of errors that ends a stream's work, such as a failed rank ending the exchanges of
// all others. Any thread may ask.
class Outside {
 public:
  virtual ~Outside() = default;
  virtual std::exception_ptr error() const = 0;  // nullptr: no error
};

class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, std::string name, StreamRole role);
  ~CudaStream() override;

  // Enqueues `body`, which issues to the given CUDA stream, now or later; `body` keeps its
  // arguments by value. `name` must outlive the stream's work (a literal).
  template <typename Body>
  void enqueue(std::string_view name, WorkClass kind, const Body& body, WorkSize size = {}) {
    enqueue_launch(name, kind, LaunchOf<Body>(body), size);
  }
  void enqueue_launch(std::string_view name,
                      WorkClass kind,
                      const Launch& launch,
                      const WorkSize& size);

  CudaDevice& cuda() const { return cuda_; }
  // Fault word of the work enqueued next.
  FaultPlace fault_place() const { return {fault_, next_ticket_}; }
  // From now on, asks `outside` whenever the host waits; an error becomes the stream's.
  void heed(const std::shared_ptr<const Outside>& outside) { outside_.insert(outside); }
  // Memory for the work enqueued next, while it runs; all work of this stream shares it.
  std::byte* workspace(std::int64_t bytes);
  // Per-stream object of a library, such as a handle: created from the CUDA stream at first use,
  // destroyed with the stream after all its work.
  template <typename T>
  T& held() {
    std::shared_ptr<void>& place = held_[typeid(T)];
    if (!place) {
      cuda_.use();
      place = std::make_shared<T>(handle_);
    }
    return *static_cast<T*>(place.get());
  }

  const std::string& name() const override { return name_; }
  void upload(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void download_all(std::vector<Download> all) override;
  void enqueue_host(std::string_view name, WorkClass kind, HostWork work, WorkSize size) override;
  Event record() override;
  void wait(const Event& event) override;
  void host_wait(const Event& event) override;
  std::uint64_t next_ticket() const override { return next_ticket_; }
  bool reached(std::uint64_t ticket) const override;
  std::exception_ptr error() const override;
  std::exception_ptr await(std::uint64_t ticket, const std::shared_ptr<base::Bell>& bell) override;
  void on_failure(std::function<void(const std::exception_ptr&)> tell) override;
  void set_label(std::string_view label) override;
  void start_recording() override;
  std::vector<WorkSpan> take_recording() override;

 private:
  // One piece of work, with its names for an error message.
  struct Work {
    std::uint64_t ticket = 0;
    WorkSpan span;
    bool timed = false;
  };
  struct Mark {
    std::uint64_t ticket = 0;
    cudaEvent_t event = nullptr;
  };
  struct TimedWork {
    WorkSpan span;
    cudaEvent_t begin = nullptr;  // nullptr: begins at the end of the one before
    cudaEvent_t end = nullptr;
  };

  Event record_work();
  Work next_work(std::string_view name, WorkClass kind, const WorkSize& size);
  // The issuer runs these four in stream order.
  void perform(const Work& work, const std::function<void()>& launch);
  void perform_host(const Work& work,
                    const HostWork& host_work,
                    const std::vector<const CudaStream*>& waited_for);
  void mark(std::uint64_t ticket);
  void wait_on_card(CudaStream& other, std::uint64_t ticket);

  bool begins_with_end_before();
  void throw_if_alone();
  bool is_failed() const;
  // True if the stream has an error, or a fault that is not reported yet.
  bool went_wrong() const;
  cudaEvent_t add_mark(std::uint64_t ticket) const;        // under mutex_
  cudaEvent_t event_covering(std::uint64_t ticket) const;  // under mutex_
  void look_for_faults();
  void look_outside();
  void look_at_known_streams();
  void fail(const std::exception_ptr& error);
  std::string place_of(std::uint64_t ticket) const;
  std::uint64_t last_issued() const;

  CudaDevice& cuda_;
  const std::string name_;
  cudaStream_t handle_ = nullptr;
  FaultWord* fault_ = nullptr;      // pinned
  std::byte* workspace_ = nullptr;  // allocated at first use
  CudaTransfers transfers_;
  Staging staging_;

  // Used by the enqueuing thread only.
  std::string_view label_;
  std::unordered_set<std::string> labels_;
  std::unordered_set<std::shared_ptr<const Outside>> outside_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> held_;
  std::uint64_t next_ticket_ = 1;
  std::uint64_t last_recorded_ = 0;
  bool waited_ = false;  // since the last work
  bool recording_ = false;
  cudaEvent_t anchor_ = nullptr;  // event at which the clocks of GPU and host were compared
  std::int64_t anchor_ns_ = 0;

  // Used by the issuing thread; read when the stream is idle.
  std::vector<TimedWork> timed_;
  bool follows_timed_ = false;  // the next work follows the last of them directly
  std::vector<WorkSpan> host_spans_;
  Events timing_{EventUse::Time};

  mutable std::mutex mutex_;  // guards the members below
  mutable std::uint64_t completed_ = 0;
  mutable std::deque<Mark> marks_;  // recorded, not known to be complete; in order
  mutable std::deque<Work> pending_;
  mutable Events events_{EventUse::Order};
  std::exception_ptr error_;
  std::function<void(const std::exception_ptr&)> tell_;

  Issuer issuer_;  // destroyed first
};

// Casts a stream to a GPU stream; CHECKs that it is one.
CudaStream& cuda_stream(Stream& stream);

}  // namespace weft::tensor::cuda
