// The streams of one rank, one for each lane its graph uses.
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

// Own: nobody but ranks of the run uses this rank's cores, and its compute gives way to what
// communicates and issues.
enum class Cores { Shared, Own };

class Lanes {
 public:
  // Streams of the device, which outlives them, for the lanes of `graph`. Where compute is the only
  // lane besides the host, it is alone: there is nothing to overlap with.
  Lanes(tensor::Device& device, const schedule::Graph& graph, Cores cores = Cores::Shared);

  tensor::Stream& operator[](schedule::Lane lane) const;
  bool has(schedule::Lane lane) const {
    return streams_[static_cast<std::size_t>(lane)] != nullptr;
  }
  // Waits until every stream is idle, then throws the error that came first.
  void synchronize() const;
  // The same without throwing: the errors that the streams keep, the first to come in front.
  std::vector<std::exception_ptr> drain() const;

  // `tell` is called at once, by whatever thread it happens on, when the first stream fails. Other
  // ranks must learn of it before this one waits for its streams, which may wait for them.
  using Tell = std::function<void(const std::exception_ptr&)>;
  void on_failure(Tell tell);
  // Tells of an error of the host's own.
  void tell(const std::exception_ptr& error) const;

 private:
  struct Failure {
    std::mutex mutex;
    std::exception_ptr first;
    Tell tell;
  };

  std::unique_ptr<Failure> failure_;  // outlives the streams
  std::array<std::unique_ptr<tensor::Stream>, schedule::kLanes> streams_;
};

}  // namespace weft::exec
