#include "weft/comm/launch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/base/text.h"
#include "weft/comm/loopback/bounce.h"
#include "weft/comm/loopback/mail.h"
#include "weft/comm/pretended.h"

namespace weft::comm {
namespace loopback {
namespace {

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(int self, ExpertMessages messages, Mail& mail)
      : self_(self), messages_(std::move(messages)), mail_(mail) {}

  void meet(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers) override {
    switch (call.operation) {
      case Operation::AllToAll:
      case Operation::AllGather:
        if (call.content == Content::Metadata) return answer(call, parts, transfers);
        bounce(transfers, parts, self_);
        return fill_behind(parts, transfers);
      case Operation::ReduceScatter:
        bounce(transfers, parts, self_);
        // Sums of what experts computed are rows too: those for a peer return as the peer's.
        if (messages_.each == 0) hold_own(parts, transfers);
        return;
      case Operation::AllReduce:
        return bounce(transfers, parts, self_);
      case Operation::Broadcast:
        return bounce(transfers, only_out(parts), self_);
      case Operation::Send:
        if (!keep(parts.front(), transfers)) bounce(transfers, parts, self_);
        return;
      case Operation::Receive:
        return bring_back(parts.front(), transfers);
      case Operation::Barrier:
        return;
    }
  }

  void fail(const std::string&) override { mail_.fail(); }  // no peer to tell

 private:
  void answer(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers) const {
    bounce_answered(transfers, parts, self_, [&](const Part& part, std::byte* bytes) {
      const std::span<const std::byte> message(bytes, static_cast<std::size_t>(part.out_bytes));
      const bool may_count = call.operation == Operation::AllGather;
      if (const auto counts = may_count ? opened_counts(message, self_) : std::nullopt) {
        const std::vector<std::int64_t> theirs = counts_of(part.member, *counts);
        std::memcpy(bytes, theirs.data(), message.size());
      } else {
        answer_choices(part, bytes);
      }
    });
  }

  std::vector<std::int64_t> counts_of(int member, const std::vector<std::int64_t>& own) const {
    std::vector<std::int64_t> counts = own;
    for (std::size_t i = 0; i < counts.size() && messages_.counted_at; ++i) {
      const std::int64_t place = messages_.counted_at(member, static_cast<std::int64_t>(i));
      counts[i] = own.at(static_cast<std::size_t>(place));
    }
    return sealed_counts(std::move(counts), member);
  }

  // A token's choices (int32) among the member's experts become the same among this rank's; others
  // are none (-1).
  void answer_choices(const Part& part, std::byte* bytes) const {
    auto* choices = reinterpret_cast<std::int32_t*>(bytes);
    const std::int64_t width = sizeof(std::int32_t);
    const std::int64_t sent = std::min(part.out_bytes, part.in_bytes) / width;
    std::fill(choices + sent, choices + part.in_bytes / width, -1);
    if (messages_.each == 0) return;
    const auto theirs = static_cast<std::int32_t>(messages_.first + part.member * messages_.each);
    const auto own = static_cast<std::int32_t>(messages_.first + self_ * messages_.each);
    const auto each = static_cast<std::int32_t>(messages_.each);
    for (std::int64_t i = 0; i < sent; ++i) {
      const std::int32_t expert = choices[i] - theirs;
      choices[i] = expert >= 0 && expert < each ? own + expert : -1;
    }
  }

  // What is expected beyond what was sent: the same again.
  void fill_behind(std::span<const Part> parts, tensor::Transfers& transfers) const {
    for (const Part& part : parts) {
      const std::int64_t more = part.in_bytes - part.out_bytes;
      if (part.member == self_ || more <= 0) continue;
      repeat(transfers, part.in + part.out_bytes, more, part.out, part.out_bytes);
    }
  }

  // Every member has the values that this one has.
  void hold_own(std::span<const Part> parts, tensor::Transfers& transfers) const {
    const Part& own = parts[static_cast<std::size_t>(self_)];
    for (const Part& part : parts) {
      if (part.member != self_) transfers.copy(part.in, own.out, part.in_bytes);
    }
  }

  static std::vector<Part> only_out(std::span<const Part> parts) {
    std::vector<Part> out(parts.begin(), parts.end());
    for (Part& part : out) part.in_bytes = 0;
    return out;
  }

  bool keep(const Part& part, tensor::Transfers& transfers) {
    return mail_.keep(transfers, {part.out, static_cast<std::size_t>(part.out_bytes)});
  }

  void bring_back(const Part& part, tensor::Transfers& transfers) {
    const std::span<const std::byte> message = mail_.kept();
    repeat(transfers, part.in, part.in_bytes, message.data(), std::ssize(message));
  }

  const int self_;
  const ExpertMessages messages_;
  Mail& mail_;
};

class LoopbackCommunicator final : public PretendedCommunicator {
 public:
  LoopbackCommunicator(Membership group, std::unique_ptr<Transport> transport, Mail& mail)
      : PretendedCommunicator(std::move(group), std::move(transport)), mail_(mail) {}

  void send(Stream& stream, Tensor data, int peer) override {
    if (data.bytes() > 0) mail_.announce();
    PretendedCommunicator::send(stream, std::move(data), peer);
  }

  void receive(Stream& stream, Tensor data, int peer) override {
    if (mail_.must_wait()) {
      stream.enqueue_host(name_of(Operation::Receive),
                          tensor::WorkClass::Communication,
                          [this](tensor::Transfers&) { mail_.wait(); });
    }
    PretendedCommunicator::receive(stream, std::move(data), peer);
  }

 private:
  Mail& mail_;
};

}  // namespace
}  // namespace loopback

void run_loopback(const LaunchOptions& options, const RankFunction& function) {
  loopback::Mail mail(options.timeout_seconds);
  const auto group = [&](Membership members) {
    const auto messages = options.expert_messages.find(members.name);
    auto transport = std::make_unique<loopback::LoopbackTransport>(
        members.self,
        messages == options.expert_messages.end() ? ExpertMessages{} : messages->second,
        mail);
    return std::make_unique<loopback::LoopbackCommunicator>(std::move(members),
                                                            std::move(transport),
                                                            mail);
  };
  run_pretended(options, {.group = group, .on_failure = [&] { mail.fail(); }}, function);
}

}  // namespace weft::comm
