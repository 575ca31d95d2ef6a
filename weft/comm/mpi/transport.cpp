#include "weft/comm/mpi/transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "weft/base/check.h"
#include "weft/comm/agreement.h"
#include "weft/comm/mpi/staging.h"

namespace weft::comm::mpi {
namespace {

// MPI counts are ints; larger parts are sent as several messages.
constexpr std::int64_t kMessageBytes = 1 << 26;
// Tags per channel and kind: more than the operations of one group in flight at once.
constexpr int kTagWindow = 256;
constexpr int kKinds = 3;  // collective, from lower to higher rank, from higher to lower
// Seconds for agreed payload to arrive after a failure: it comes unless the peer fails too.
constexpr double kPayloadPatience = 0.5;

// Header that a member sends to a peer before the payload. Fixed size; every field is checked.
struct Header {
  Terms terms;
  std::uint64_t group = 0;      // fingerprint of name and members
  std::array<char, 32> name{};  // for the error text; zero-terminated
};

// Headers of one meeting by member.
struct Headers {
  explicit Headers(std::size_t members) : mine(members), theirs(members) {}
  std::vector<Header> mine, theirs;
};

std::uint64_t fingerprint(const Membership& group) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
  for (const char c : group.name) mix(static_cast<unsigned char>(c));
  mix(0x100);
  for (const int rank : group.members) mix(static_cast<std::uint64_t>(rank));
  return hash;
}

class MpiTransport final : public Transport {
 public:
  MpiTransport(World& world, Membership group, std::vector<int> channels)
      : world_(world),
        group_(std::move(group)),
        channels_(std::move(channels)),
        fingerprint_(fingerprint(group_)) {
    for (const int channel : channels_) {
      if (channel >= world.largest_tag() / (kKinds * kTagWindow) - 1) {
        throw base::SystemError(
            base::text("group '{}' is number {} between two ranks; MPI has tags up to {} only",
                       group_.name,
                       channel,
                       world.largest_tag()));
      }
    }
  }

  void meet(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers) override {
    agree(call, parts);
    Staging staging(group_, parts, transfers);
    exchange(call, staging);
    staging.deliver();
  }

  void fail(const std::string& reason) override { world_.fail(reason); }

 private:
  void agree(const Call& call, std::span<const Part> parts);
  void exchange(const Call& call, const Staging& staging);
  Header header_for(const Call& call, std::span<const Part> parts) const;
  void check_header(const Header& mine, int member, Header theirs) const;
  int tag(const Call& call, int member) const;
  auto late_text(const Call& call) const {
    return [this, &call](const std::vector<int>& members) {
      return describe_late(group_, call, members, world_.timeout_seconds());
    };
  }

  World& world_;
  const Membership group_;
  const std::vector<int> channels_;
  const std::uint64_t fingerprint_;
};

int MpiTransport::tag(const Call& call, int member) const {
  int kind = 0;
  if (call.operation == Operation::Send || call.operation == Operation::Receive) {
    const bool upwards =
        (group_.world_rank() < group_.rank_of(member)) == (call.operation == Operation::Send);
    kind = upwards ? 1 : 2;
  }
  const int within = static_cast<int>(call.sequence % kTagWindow);
  return (channels_[static_cast<std::size_t>(member)] * kKinds + kind) * kTagWindow + within;
}

Header MpiTransport::header_for(const Call& call, std::span<const Part> parts) const {
  Header header{.terms = terms_of(call, parts), .group = fingerprint_};
  std::memcpy(header.name.data(),
              group_.name.data(),
              std::min(group_.name.size(), header.name.size() - 1));
  return header;
}

void MpiTransport::check_header(const Header& mine, int member, Header theirs) const {
  if (theirs.group != fingerprint_) {
    theirs.name.back() = '\0';
    throw base::SystemError(
        base::text("rank {} is in group '{}' [{}] where rank {} is in group '{}' or orders its "
                   "ranks differently",
                   group_.world_rank(),
                   group_.name,
                   fmt::join(group_.members, " "),
                   group_.rank_of(member),
                   theirs.name.data()));
  }
  check_agreement(group_, mine.terms, member, theirs.terms);
}

void MpiTransport::agree(const Call& call, std::span<const Part> parts) {
  const std::vector<std::span<const Part>> members = by_member(parts);
  auto headers = std::make_shared<Headers>(members.size());
  Requests requests;
  requests.storage = headers;
  world_.post(requests, [&](MPI_Comm comm) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int member = members[i].front().member;
      if (member == group_.self) continue;
      const int peer = group_.rank_of(member);
      headers->mine[i] = header_for(call, members[i]);
      check_mpi(MPI_Irecv(&headers->theirs[i],
                          sizeof(Header),
                          MPI_BYTE,
                          peer,
                          tag(call, member),
                          comm,
                          requests.add(member)),
                "MPI_Irecv");
      check_mpi(MPI_Isend(&headers->mine[i],
                          sizeof(Header),
                          MPI_BYTE,
                          peer,
                          tag(call, member),
                          comm,
                          requests.add(member)),
                "MPI_Isend");
    }
  });
  world_.wait(requests, 0, late_text(call));
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int member = members[i].front().member;
    if (member != group_.self) check_header(headers->mine[i], member, headers->theirs[i]);
  }
}

void MpiTransport::exchange(const Call& call, const Staging& staging) {
  Requests requests;
  requests.storage = staging.memory();
  const auto pieces = [](std::int64_t bytes, const auto& each) {
    for (std::int64_t at = 0; at < bytes; at += kMessageBytes)
      each(at, static_cast<int>(std::min(kMessageBytes, bytes - at)));
  };
  world_.post(requests, [&](MPI_Comm comm) {
    for (const Part& part : staging.parts()) {
      if (part.member == group_.self) continue;
      const int peer = group_.rank_of(part.member);
      const int wire_tag = tag(call, part.member);
      pieces(part.in_bytes, [&](std::int64_t at, int bytes) {
        check_mpi(MPI_Irecv(part.in + at,
                            bytes,
                            MPI_BYTE,
                            peer,
                            wire_tag,
                            comm,
                            requests.add(part.member)),
                  "MPI_Irecv");
      });
      pieces(part.out_bytes, [&](std::int64_t at, int bytes) {
        check_mpi(MPI_Isend(part.out + at,
                            bytes,
                            MPI_BYTE,
                            peer,
                            wire_tag,
                            comm,
                            requests.add(part.member)),
                  "MPI_Isend");
      });
    }
  });
  world_.wait(requests, kPayloadPatience, late_text(call));
}

}  // namespace

std::unique_ptr<Transport> make_transport(World& world,
                                          Membership group,
                                          std::vector<int> channels) {
  return std::make_unique<MpiTransport>(world, std::move(group), std::move(channels));
}

}  // namespace weft::comm::mpi
