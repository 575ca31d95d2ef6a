// The streams of one rank, one for each lane its graph uses.
#pragma once

#include <array>
#include <exception>
#include <memory>
#include <vector>

#include "weft/schedule/graph.h"
#include "weft/tensor/stream.h"

namespace weft::exec {

// Own: nobody else uses this rank's cores, and its compute gives way to its communication.
enum class Cores { Shared, Own };

class Lanes {
 public:
  // Streams for the lanes of `graph`; `threads` compute threads on the compute lane. Where compute
  // is the only lane besides the host, it runs inline: there is nothing to overlap with.
  Lanes(const schedule::Graph& graph, int threads, Cores cores = Cores::Shared);

  tensor::Stream& operator[](schedule::Lane lane) const;
  bool has(schedule::Lane lane) const {
    return streams_[static_cast<std::size_t>(lane)] != nullptr;
  }
  // Waits until every stream is idle, then throws the error of the first lane that has one.
  void synchronize() const;
  // The same without throwing: the errors that the streams keep.
  std::vector<std::exception_ptr> drain() const;

 private:
  std::array<std::unique_ptr<tensor::Stream>, schedule::kLanes> streams_;
};

}  // namespace weft::exec
