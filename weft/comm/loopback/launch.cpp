#include "weft/comm/launch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/base/text.h"
#include "weft/comm/loopback/bounce.h"
#include "weft/comm/loopback/links.h"
#include "weft/comm/loopback/mail.h"
#include "weft/comm/pretended.h"

namespace weft::comm {
namespace loopback {
namespace {

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(Membership group, ExpertMessages messages, Mail& mail, Links& links)
      : group_(std::move(group)),
        self_(group_.self),
        messages_(std::move(messages)),
        mail_(mail),
        links_(links) {}

  // Copied in the meeting.
  void copy_own(std::span<const tensor::Copy>, tensor::Transfers&) override {}

  // Over emulated links the copies run during the emulated transfer.
  void meet(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers) override {
    const std::int64_t end_ns = links_.reserve(group_, parts);
    move(call, parts, transfers);
    links_.wait_until(end_ns);
  }

  void fail(const std::string&) override {  // no peer to tell
    mail_.fail();
    links_.fail();
  }

 private:
  void move(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers) {
    switch (call.operation) {
      case Operation::AllToAll:
      case Operation::AllGather:
        if (call.content == Content::Metadata) return answer(call, parts, transfers);
        carry(transfers, parts);
        return fill_behind(parts, transfers);
      case Operation::ReduceScatter:
        // Sums of expert outputs are rows too: rows for a peer return as the peer's rows.
        if (messages_.each > 0) return carry(transfers, parts);
        if (!links_.are_emulated()) bounce(transfers, parts, self_);
        return hold_own(parts, transfers);
      case Operation::AllReduce:
        return carry(transfers, parts);
      case Operation::Broadcast:
        return carry(transfers, only_out(parts));
      case Operation::Send:
        if (!keep(parts.front(), transfers)) carry(transfers, parts);
        return;
      case Operation::Receive:
        return bring_back(parts.front(), transfers);
      case Operation::Barrier:
        return;
    }
  }

  void carry(tensor::Transfers& transfers, std::span<const Part> parts) const {
    links_.are_emulated() ? hand_back(transfers, parts, self_) : bounce(transfers, parts, self_);
  }

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

  // Maps a token's choices (int32) of the member's experts to this rank's experts. Other choices
  // become none (-1).
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

  // Fills the expected bytes beyond the sent ones by repetition.
  void fill_behind(std::span<const Part> parts, tensor::Transfers& transfers) const {
    for (const Part& part : parts) {
      const std::int64_t more = part.in_bytes - part.out_bytes;
      if (part.member == self_ || more <= 0) continue;
      repeat(transfers, part.in + part.out_bytes, more, part.out, part.out_bytes);
    }
  }

  // Gives every member this rank's values.
  void hold_own(std::span<const Part> parts, tensor::Transfers& transfers) const {
    const Part& own = parts[static_cast<std::size_t>(self_)];
    std::vector<tensor::Copy> copies;
    for (const Part& part : parts) {
      if (part.member != self_) copies.push_back({part.in, own.out, part.in_bytes});
    }
    transfers.copy_pieces(copies);
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

  const Membership group_;
  const int self_;
  const ExpertMessages messages_;
  Mail& mail_;
  Links& links_;
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
  check_options(options, 1);
  loopback::Mail mail(options.timeout_seconds);
  loopback::Links links(options.world);
  const auto group = [&](Membership members) {
    const auto messages = options.expert_messages.find(members.name);
    auto transport = std::make_unique<loopback::LoopbackTransport>(
        members,
        messages == options.expert_messages.end() ? ExpertMessages{} : messages->second,
        mail,
        links);
    return std::make_unique<loopback::LoopbackCommunicator>(std::move(members),
                                                            std::move(transport),
                                                            mail);
  };
  const auto fail = [&] {
    mail.fail();
    links.fail();
  };
  const auto set_fabric = [&](const std::optional<grid::Fabric>& fabric) { links.set(fabric); };
  run_pretended(options, {.group = group, .on_failure = fail, .set_fabric = set_fabric}, function);
}

}  // namespace weft::comm
