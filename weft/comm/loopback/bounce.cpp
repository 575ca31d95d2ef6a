#include "weft/comm/loopback/bounce.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace weft::comm::loopback {
namespace {

using tensor::Copy;

// Bytes per direction between two waits of the host, long against the start of a copy. Allocations
// always have this size: the memory that a device keeps (tensor/transfers.h) then serves every
// later operation.
constexpr std::int64_t kRoundBytes = 16 << 20;

// Parts laid end to end; each has the length of its longer direction.
struct Cargo {
  std::vector<Part> parts;
  std::int64_t bytes = 0;

  static std::int64_t length(const Part& part) { return std::max(part.out_bytes, part.in_bytes); }
};

Cargo cargo_of(std::span<const Part> parts, int self) {
  Cargo cargo;
  for (const Part& part : parts) {
    if (part.member == self || Cargo::length(part) == 0) continue;
    cargo.parts.push_back(part);
    cargo.bytes += Cargo::length(part);
  }
  return cargo;
}

// Copies of this member's own part.
std::vector<Copy> copies_to_self(std::span<const Part> parts, int self) {
  std::vector<Copy> copies;
  for (const Part& part : parts) {
    if (part.member == self && part.in != part.out && part.in_bytes > 0) {
      copies.push_back({part.in, part.out, part.in_bytes});
    }
  }
  return copies;
}

// Copies of the cargo range [begin, end) between device and host memory.
struct Round {
  std::vector<Copy> out, in;
};

// Merges adjacent copies into one: blocks of rows in member order are adjacent.
void add(std::vector<Copy>& copies, const Copy& next) {
  const bool follows = !copies.empty() && copies.back().to + copies.back().bytes == next.to &&
                       copies.back().from + copies.back().bytes == next.from;
  if (follows) {
    copies.back().bytes += next.bytes;
  } else {
    copies.push_back(next);
  }
}

Round round_of(const Cargo& cargo,
               std::int64_t begin,
               std::int64_t end,
               std::byte* host,
               std::byte* unread) {
  Round round;
  std::int64_t at = 0;  // offset of the part
  for (const Part& part : cargo.parts) {
    const std::int64_t first = std::max<std::int64_t>(begin - at, 0);
    const std::int64_t last = std::min(end - at, Cargo::length(part));
    const std::int64_t place = at + first - begin;
    at += Cargo::length(part);
    if (first >= last) continue;
    if (first < part.out_bytes) {
      add(round.out, {host + place, part.out + first, std::min(last, part.out_bytes) - first});
    }
    if (first < part.in_bytes) {
      std::byte* to = part.in == nullptr ? unread + place : part.in + first;
      add(round.in, {to, host + place, std::min(last, part.in_bytes) - first});
    }
  }
  return round;
}

// Copies out of the device. A buffer for several members leaves once; the host repeats it.
struct Leaving {
  std::vector<Copy> copies;
  std::vector<Copy> repeated;  // inside host memory
};

Leaving leaving_once(const std::vector<Copy>& all) {
  Leaving leaving;
  for (const Copy& copy : all) {
    const auto same = std::ranges::find_if(leaving.copies, [&](const Copy& other) {
      return other.from == copy.from && other.bytes == copy.bytes;
    });
    if (same == leaving.copies.end()) {
      leaving.copies.push_back(copy);
    } else {
      leaving.repeated.push_back({copy.to, same->to, copy.bytes});
    }
  }
  return leaving;
}

}  // namespace

void bounce(tensor::Transfers& transfers, std::span<const Part> parts, int self) {
  const Cargo cargo = cargo_of(parts, self);
  const bool has_unread = std::ranges::any_of(cargo.parts, [](const Part& part) {
    return part.in == nullptr && part.in_bytes > 0;
  });
  const std::shared_ptr<std::byte> unread = has_unread ? transfers.scratch(kRoundBytes) : nullptr;
  std::array<std::shared_ptr<std::byte>, 2> host;
  const auto travel = [&] {
    std::vector<Copy> coming;
    for (std::int64_t begin = 0, turn = 0; begin < cargo.bytes;
         begin += kRoundBytes, turn = 1 - turn) {
      std::shared_ptr<std::byte>& memory = host[static_cast<std::size_t>(turn)];
      if (!memory) memory = transfers.host_scratch(kRoundBytes);
      const std::int64_t end = std::min(begin + kRoundBytes, cargo.bytes);
      Round round = round_of(cargo, begin, end, memory.get(), unread.get());
      transfers.copy_both(round.out, coming);
      coming = std::move(round.in);
    }
    transfers.copy_both({}, coming);
  };
  transfers.copy_pieces(copies_to_self(parts, self), travel);
}

void hand_back(tensor::Transfers& transfers, std::span<const Part> parts, int self) {
  std::vector<Copy> copies = copies_to_self(parts, self);
  for (const Part& part : parts) {
    if (part.member == self || part.in == nullptr) continue;
    copies.push_back({part.in, part.out, std::min(part.out_bytes, part.in_bytes)});
  }
  transfers.copy_pieces(copies);
}

void bounce_answered(tensor::Transfers& transfers,
                     std::span<const Part> parts,
                     int self,
                     const Answer& answer) {
  // The own part travels like the others: a separate copy would cost the host more time.
  constexpr int kNobody = -1;
  Cargo cargo = cargo_of(parts, kNobody);
  const auto is_there = [&](const Part& part) {
    return part.member == self && part.in == part.out;
  };
  for (const Part& part : cargo.parts) cargo.bytes -= is_there(part) ? Cargo::length(part) : 0;
  std::erase_if(cargo.parts, is_there);
  const std::shared_ptr<std::byte> host =
      transfers.host_scratch(std::max(cargo.bytes, kRoundBytes));
  const Round round = round_of(cargo, 0, cargo.bytes, host.get(), nullptr);
  const Leaving leaving = leaving_once(round.out);
  transfers.copy_both(leaving.copies, {});
  for (const auto& [to, from, bytes] : leaving.repeated) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  std::byte* bytes = host.get();
  for (const Part& part : cargo.parts) {
    if (part.member != self) answer(part, bytes);
    bytes += Cargo::length(part);
  }
  transfers.copy_both({}, round.in);
}

}  // namespace weft::comm::loopback
