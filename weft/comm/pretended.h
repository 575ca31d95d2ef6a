// One rank of a world whose other ranks are not there: what the backends that pretend share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/launch.h"

namespace weft::comm {

// Peers hold what this rank holds, in a sum all of it and not only their own chunk.
class PretendedCommunicator : public Collectives {
 public:
  using Collectives::Collectives;

  // Its meetings (AllReduce) have parts that come to no place: the sum is known here.
  void all_reduce(Stream& stream, Tensor data, Reduce reduce) override;
};

// The counts in a message of `member`, which has as many bytes; none where it is not one of sealed
// counts (base/sealed_count.h).
std::optional<std::vector<std::int64_t>> opened_counts(std::span<const std::byte> message,
                                                       int member);
// The same counts under the code of a member: a message of that member.
std::vector<std::int64_t> sealed_counts(std::vector<std::int64_t> counts, int member);

// `from` over and over until `to` is full; zeros where there is nothing.
void repeat(tensor::Transfers& transfers,
            std::byte* to,
            std::int64_t to_bytes,
            const std::byte* from,
            std::int64_t from_bytes);

// What the endpoint of the one rank needs of its backend.
struct PretendedWorld {
  std::function<std::unique_ptr<Communicator>(Membership group)> group;
  std::function<void()> on_failure = [] {};
  std::function<void(const std::optional<grid::Fabric>&)> set_fabric = refuse_fabric;
};

// Runs the one rank of checked options in this thread; its error has the rank in front.
void run_pretended(const LaunchOptions& options,
                   const PretendedWorld& world,
                   const RankFunction& function);

}  // namespace weft::comm
