// Shared parts of the backends that pretend the other ranks of a world.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/comm/collectives.h"
#include "weft/comm/launch.h"

namespace weft::comm {

// Peers hold the data of this rank; in a sum they hold the whole tensor, not only their chunk.
class PretendedCommunicator : public Collectives {
 public:
  using Collectives::Collectives;

  // The sum is computed locally: the parts of its meetings (AllReduce) have no destination.
  void all_reduce(Stream& stream, Tensor data, Reduce reduce) override;
};

// Counts in a message of `member` of equal size. nullopt: not a message of sealed counts
// (base/sealed_count.h).
std::optional<std::vector<std::int64_t>> opened_counts(std::span<const std::byte> message,
                                                       int member);
// Seals the counts under the code of `member`, as a message of that member.
std::vector<std::int64_t> sealed_counts(std::vector<std::int64_t> counts, int member);

// Repeats `from` until `to` is full. Empty `from`: zeros.
void repeat(tensor::Transfers& transfers,
            std::byte* to,
            std::int64_t to_bytes,
            const std::byte* from,
            std::int64_t from_bytes);

// Callbacks of the backend for the endpoint of the one rank.
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
