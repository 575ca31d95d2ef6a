// A stream of a GPU: a CUDA stream, and a thread for what must wait on the host (issuer.h).
//
// Positions are CUDA events, recorded where record() is called; a position without one of its own
// (a tensor's last use) is covered by the next that was recorded, or by one recorded when somebody
// asks. What the card finds wrong (the fault word, an error of the driver) is seen when the host
// waits. Streams that waited for each other end together: each looks at the errors of those it
// waited for.
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

// What may end a stream's work from outside, as a rank that fails ends the exchanges of all others.
// Any thread may ask.
class Outside {
 public:
  virtual ~Outside() = default;
  virtual std::exception_ptr error() const = 0;  // none: all is well
};

class CudaStream final : public Stream {
 public:
  CudaStream(CudaDevice& device, std::string name, StreamRole role);
  ~CudaStream() override;

  // Enqueues what `launch` hands to the CUDA stream it is given, now or later: it keeps its
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
  // Of the work enqueued next.
  FaultPlace fault_place() const { return {fault_, next_ticket_}; }
  // Asked from now on whenever the host waits; its error becomes the stream's.
  void heed(const std::shared_ptr<const Outside>& outside) { outside_.insert(outside); }
  // Memory for the work enqueued next, while it runs; the same for every work of this stream.
  std::byte* workspace(std::int64_t bytes);
  // What a library keeps for this stream, as a handle is: made of the CUDA stream at the first use,
  // ends with this one after all its work.
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
  // One piece of work, and who to name when something is wrong with it.
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
    cudaEvent_t begin = nullptr;  // null: with the end of the one before
    cudaEvent_t end = nullptr;
  };

  Event record_work();
  Work next_work(std::string_view name, WorkClass kind, const WorkSize& size);
  // These four run in the order of the stream, by the issuer.
  void perform(const Work& work, const std::function<void()>& launch);
  void perform_host(const Work& work,
                    const HostWork& host_work,
                    const std::vector<const CudaStream*>& waited_for);
  void mark(std::uint64_t ticket);
  void wait_on_card(CudaStream& other, std::uint64_t ticket);

  bool begins_with_end_before();
  void throw_if_alone();
  bool is_failed() const;
  // Whether it has an error, or a fault that is not told yet.
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
  std::byte* workspace_ = nullptr;  // made at the first use
  CudaTransfers transfers_;
  Staging staging_;

  // Of the thread that enqueues.
  std::string_view label_;
  std::unordered_set<std::string> labels_;
  std::unordered_set<std::shared_ptr<const Outside>> outside_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> held_;
  std::uint64_t next_ticket_ = 1;
  std::uint64_t last_recorded_ = 0;
  bool waited_ = false;  // since the last work
  bool recording_ = false;
  cudaEvent_t anchor_ = nullptr;  // where the clock of the card and the host's were compared
  std::int64_t anchor_ns_ = 0;

  // Of whoever issues; read when the stream is idle.
  std::vector<TimedWork> timed_;
  bool follows_timed_ = false;  // what is issued next stands right behind the last of them
  std::vector<WorkSpan> host_spans_;
  Events timing_{EventUse::Time};

  mutable std::mutex mutex_;  // of what follows
  mutable std::uint64_t completed_ = 0;
  mutable std::deque<Mark> marks_;  // recorded and not known to be over, in order
  mutable std::deque<Work> pending_;
  mutable Events events_{EventUse::Order};
  std::exception_ptr error_;
  std::function<void(const std::exception_ptr&)> tell_;

  Issuer issuer_;  // ends first
};

// The one place where a stream is taken for one of a GPU; CHECKs that it is.
CudaStream& cuda_stream(Stream& stream);

}  // namespace weft::tensor::cuda
