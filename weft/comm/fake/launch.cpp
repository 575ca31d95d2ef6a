#include "weft/comm/launch.h"

#include <utility>

#include "weft/comm/pretended.h"

namespace weft::comm {
namespace {

class FakeTransport final : public Transport {
 public:
  explicit FakeTransport(int self) : self_(self) {}

  void meet(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers) override {
    if (call.operation == Operation::Broadcast || call.operation == Operation::AllReduce) return;
    const std::vector<std::span<const Part>> members = by_member(parts);
    // A Send or Receive has no own part.
    const std::vector<Part> nothing(parts.size());
    const std::span<const Part> own =
        members.size() == 1 ? nothing : members[static_cast<std::size_t>(self_)];
    std::optional<std::vector<std::int64_t>> counts;
    if (call.operation == Operation::AllGather && call.content == Content::Metadata) {
      std::vector<std::byte> message(static_cast<std::size_t>(own[0].out_bytes));
      transfers.copy(message.data(), own[0].out, own[0].out_bytes);
      counts = opened_counts(message, self_);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part &part = parts[i], &block = own[i % own.size()];
      if (part.member == self_) continue;
      if (counts) {
        const std::vector<std::int64_t> sealed = sealed_counts(*counts, part.member);
        transfers.copy(part.in, reinterpret_cast<const std::byte*>(sealed.data()), part.in_bytes);
      } else {
        repeat(transfers, part.in, part.in_bytes, block.out, block.out_bytes);
      }
    }
  }

  void fail(const std::string&) override {}  // no peer to tell; the stream keeps the error

 private:
  const int self_;
};

}  // namespace

void run_fake(const LaunchOptions& options, const RankFunction& function) {
  check_options(options, 1);
  const auto group = [](Membership members) {
    auto transport = std::make_unique<FakeTransport>(members.self);
    return std::make_unique<PretendedCommunicator>(std::move(members), std::move(transport));
  };
  run_pretended(options, {.group = group}, function);
}

}  // namespace weft::comm
