#include "weft/comm/launch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/sealed_count.h"
#include "weft/base/text.h"
#include "weft/comm/collectives.h"
#include "weft/comm/failure.h"

namespace weft::comm {
namespace {

// `own.out` over and over until `part.in` is full; zeros where there is nothing.
void repeat(tensor::Transfers& transfers, const Part& own, const Part& part) {
  if (own.out_bytes == 0) return transfers.clear(part.in, part.in_bytes);
  for (std::int64_t at = 0; at < part.in_bytes; at += own.out_bytes) {
    transfers.copy(part.in + at, own.out, std::min(own.out_bytes, part.in_bytes - at));
  }
}

// What this member sends, as sealed counts (base/sealed_count.h); none where it is something else.
std::optional<std::vector<std::int64_t>> opened_counts(tensor::Transfers& transfers,
                                                       const Part& own,
                                                       int self) {
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(std::int64_t));
  if (own.out_bytes == 0 || own.out_bytes % kWidth != 0) return std::nullopt;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(own.out_bytes / kWidth));
  transfers.copy(reinterpret_cast<std::byte*>(counts.data()), own.out, own.out_bytes);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto count = base::unseal(counts[i], self, static_cast<std::int64_t>(i));
    if (!count) return std::nullopt;
    counts[i] = *count;
  }
  return counts;
}

class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(int self) : self_(self) {}

  void meet(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers) override {
    if (call.operation == Operation::Broadcast) return;
    const bool alone = parts.size() == 1;  // a Send or Receive: nothing goes to oneself
    const Part own = alone ? Part{} : parts[static_cast<std::size_t>(self_)];
    const auto counts = call.operation == Operation::AllGather
                            ? opened_counts(transfers, own, self_)
                            : std::nullopt;
    for (const Part& part : parts) {
      if (part.member == self_) continue;
      if (counts) {
        seal_as(transfers, part, *counts);
      } else {
        repeat(transfers, own, part);
      }
    }
  }

  void fail(const std::string&) override {}  // no peer to tell; the stream keeps the error

 private:
  // The same counts under the code of the member that is pretended to have sent them.
  static void seal_as(tensor::Transfers& transfers,
                      const Part& part,
                      std::vector<std::int64_t> counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = base::seal(counts[i], part.member, static_cast<std::int64_t>(i));
    }
    transfers.copy(part.in, reinterpret_cast<const std::byte*>(counts.data()), part.in_bytes);
  }

  const int self_;
};

class FakeCommunicator final : public Collectives {
 public:
  using Collectives::Collectives;

  // Peers hold what this rank holds, all of it and not only its own chunk.
  void all_reduce(Stream& stream, Tensor data, Reduce reduce) override {
    tensor::check_reducible(data.dtype());
    const Chunks chunks{.elements = data.elements(), .members = size()};
    const tensor::DType dtype = data.dtype();
    std::byte* all = data.raw(stream);
    // Everyone's chunks out, then this rank's own to everyone.
    const std::int64_t mine = chunks.count(rank());
    const std::int64_t sent =
        (chunks.elements - mine + (size() - 1) * mine) * tensor::size_of(dtype);
    issue(stream,
          Operation::AllReduce,
          size_of_call(sent),
          [=, this](tensor::Transfers& transfers) {
            const std::vector<const std::byte*> sources(static_cast<std::size_t>(size()), all);
            transfers.reduce(dtype, reduce, all, sources, chunks.elements);
            return sent;
          });
  }
};

class FakeEndpoint final : public Endpoint {
 public:
  explicit FakeEndpoint(const LaunchOptions& options)
      : rank_(options.rank), world_(options.world) {}

  int rank() const override { return rank_; }
  int world() const override { return world_; }
  int local_rank() const override { return 0; }  // alone on its machine
  void set_fabric(const grid::Fabric& fabric) override { refuse_fabric(fabric); }

  std::unique_ptr<Communicator> group(std::string name, std::vector<int> members) override {
    Membership group = make_membership(std::move(name), std::move(members), rank_, world_);
    auto transport = std::make_unique<FakeTransport>(group.self);
    return std::make_unique<FakeCommunicator>(std::move(group), std::move(transport));
  }

  void fail(const std::string& reason) override {
    if (!failure_) failure_ = reason;
  }

  const std::optional<std::string>& failure() const { return failure_; }

 private:
  const int rank_;
  const int world_;
  std::optional<std::string> failure_;
};

}  // namespace

void run_fake(const LaunchOptions& options, const RankFunction& function) {
  check_options(options, 1);
  refuse_fabric(options.fabric);
  FakeEndpoint endpoint(options);
  try {
    function(endpoint);
  } catch (...) {
    throw_from_rank(options.rank, std::current_exception());
  }
  if (endpoint.failure()) {
    throw base::SystemError(base::text("rank {}: {}", options.rank, *endpoint.failure()));
  }
}

}  // namespace weft::comm
