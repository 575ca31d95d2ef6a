// Streams of one rank, one for each lane that its graph uses.
#pragma once

#include <array>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/schedule/graph.h"
#include "weft/tensor/stream.h"

namespace weft::exec {

// Own: only ranks of this run use the rank's cores, and its compute yields to threads that
// communicate and issue.
enum class Cores { Shared, Own };

class Lanes {
 public:
  // Makes the streams of the device, which must outlive them, for the lanes of `graph`. If compute
  // is the only lane besides the host, its stream is Alone: it has nothing to overlap with.
  Lanes(tensor::Device& device, const schedule::Graph& graph, Cores cores = Cores::Shared);

  tensor::Stream& operator[](schedule::Lane lane) const;
  bool has(schedule::Lane lane) const {
    return streams_[static_cast<std::size_t>(lane)] != nullptr;
  }
  // Waits until every stream is idle, then throws the first error.
  void synchronize() const;
  // Waits until every stream is idle; returns the streams' errors, the first to occur in front.
  std::vector<std::exception_ptr> drain() const;

  // Registers `tell`, called at once on the failing thread when the first stream fails. Other ranks
  // must learn of the failure before this one waits for its streams, which may wait for them.
  using Tell = std::function<void(const std::exception_ptr&)>;
  void on_failure(Tell tell);
  // Reports an error of the host thread.
  void tell(const std::exception_ptr& error) const;

 private:
  struct Failure {
    std::mutex mutex;
    std::exception_ptr first;
    Tell tell;
  };

  std::unique_ptr<Failure> failure_;  // must outlive the streams
  std::array<std::unique_ptr<tensor::Stream>, schedule::kLanes> streams_;
};

}  // namespace weft::exec
