#include "weft/comm/loopback/bounce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/base/check.h"

namespace weft::comm::loopback {
namespace bounce_test {

using tensor::Copy;

// Process memory that counts transfers between device and host.
class CountingTransfers final : public tensor::Transfers {
 public:
  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    if (bytes == 0) return;
    const bool to_host = is_host(to), from_host = is_host(from);
    CHECK(!to_host || !from_host, "a copy inside the host's memory");
    (to_host ? left : from_host ? came_back : stayed) += bytes;
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  // Copies the second list first: the lists must be independent.
  void copy_both(std::span<const Copy> some, std::span<const Copy> others) override {
    both += !some.empty() && !others.empty();
    for (const auto& [to, from, bytes] : others) copy(to, from, bytes);
    for (const auto& [to, from, bytes] : some) copy(to, from, bytes);
  }
  void copy_pieces(std::span<const Copy> pieces, const std::function<void()>& meanwhile) override {
    const std::int64_t before = left;
    meanwhile();
    has_travelled_beside = left > before;
    for (const auto& [to, from, bytes] : pieces) copy(to, from, bytes);
  }
  void clear(std::byte*, std::int64_t) override { UNREACHABLE("not asked for"); }
  void reduce(tensor::DType,
              tensor::Reduce,
              std::byte*,
              std::span<const std::byte* const>,
              std::int64_t) override {
    UNREACHABLE("not asked for");
  }
  std::shared_ptr<std::byte> scratch(std::int64_t bytes) override {
    return {new std::byte[static_cast<std::size_t>(bytes)], std::default_delete<std::byte[]>()};
  }
  std::shared_ptr<std::byte> host_scratch(std::int64_t bytes) override {
    pinned += bytes;
    auto memory = scratch(bytes);
    host_.push_back({memory.get(), static_cast<std::size_t>(bytes)});
    return memory;
  }
  std::byte* on_host(const std::byte*) override { return nullptr; }

  std::int64_t left = 0, came_back = 0, stayed = 0, pinned = 0, both = 0;
  bool has_travelled_beside = false;

 private:
  bool is_host(const std::byte* at) const {
    return std::ranges::any_of(host_, [&](std::span<const std::byte> piece) {
      return at >= piece.data() && at < piece.data() + piece.size();
    });
  }

  std::vector<std::span<const std::byte>> host_;
};

std::vector<std::byte> pattern(std::int64_t bytes, int seed) {
  std::vector<std::byte> all(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::byte>(i * 31 + i / 251 + static_cast<std::size_t>(seed));
  }
  return all;
}

struct Parcel {
  Parcel(std::int64_t out_bytes, std::int64_t in_bytes, int seed)
      : out(pattern(out_bytes, seed)), in(static_cast<std::size_t>(in_bytes)) {}
  Part part(int member) { return {member, out.data(), std::ssize(out), in.data(), std::ssize(in)}; }
  bool has_returned() const {
    return std::equal(in.begin(),
                      in.begin() + std::ptrdiff_t(std::min(in.size(), out.size())),
                      out.begin());
  }
  std::vector<std::byte> out, in;
};

TEST(Bounce, WhatLeavesComesBackInRoundsOfFixedHostMemory) {
  constexpr std::int64_t kMiB = 1 << 20;
  Parcel own(5, 5, 1), long_one(37 * kMiB + 3, 37 * kMiB + 3, 2), none(0, 0, 3), small(7, 7, 4);
  std::vector<Part> parts{own.part(0), long_one.part(1), none.part(2), small.part(3)};
  CountingTransfers transfers;
  bounce(transfers, parts, 0);
  EXPECT_TRUE(long_one.has_returned());
  EXPECT_TRUE(small.has_returned());
  EXPECT_TRUE(own.has_returned());
  EXPECT_EQ(transfers.stayed, 5) << "a member's own part";
  EXPECT_EQ(transfers.left, 37 * kMiB + 10);
  EXPECT_EQ(transfers.came_back, transfers.left);
  EXPECT_LE(transfers.pinned, 32 * kMiB);
  EXPECT_EQ(transfers.both, 2) << "what comes back of a round goes beside the next";
  EXPECT_TRUE(transfers.has_travelled_beside) << "the own part waits for none of them";
}

TEST(Bounce, DirectionsMayDifferInLength) {
  Parcel more_out(100, 30, 1), more_in(20, 90, 2), only_in(0, 12, 3), only_out(9, 0, 4);
  std::vector<Part> parts{more_out.part(1), more_in.part(2), only_in.part(3), only_out.part(4)};
  CountingTransfers transfers;
  bounce(transfers, parts, 0);
  EXPECT_TRUE(more_out.has_returned());
  EXPECT_TRUE(more_in.has_returned());
  EXPECT_EQ(transfers.left, 129);
  EXPECT_EQ(transfers.came_back, 132);
}

TEST(Bounce, APartWithoutAPlaceTravelsAllTheSame) {
  Parcel out(50, 0, 1);
  Part part = out.part(1);
  part.in = nullptr;
  part.in_bytes = 70;
  CountingTransfers transfers;
  bounce(transfers, {&part, 1}, 0);
  EXPECT_EQ(transfers.left, 50);
  EXPECT_EQ(transfers.came_back, 70);
}

TEST(Bounce, AnAnswerIsMadeOnTheHost) {
  Parcel own(6, 6, 3), one(4, 8, 1), other(8, 8, 2);
  std::vector<Part> parts{own.part(0), one.part(1), other.part(2)};
  CountingTransfers transfers;
  bounce_answered(transfers, parts, 0, [](const Part& part, std::byte* bytes) {
    EXPECT_NE(part.member, 0) << "the own part is not answered";
    EXPECT_EQ(std::memcmp(bytes, part.out, static_cast<std::size_t>(part.out_bytes)), 0);
    std::fill_n(bytes, part.in_bytes, static_cast<std::byte>(part.member));
  });
  EXPECT_EQ(one.in, std::vector<std::byte>(8, std::byte{1}));
  EXPECT_EQ(other.in, std::vector<std::byte>(8, std::byte{2}));
  EXPECT_TRUE(own.has_returned());
  EXPECT_EQ(transfers.left, 18);
  EXPECT_EQ(transfers.came_back, 22);
}

TEST(Bounce, WhatMembersGetAlikeGoesToTheHostOnce) {
  Parcel own(8, 8, 3), one(8, 8, 1), other(8, 8, 1);
  std::vector<Part> parts{own.part(0), one.part(1), other.part(2)};
  for (Part& part : parts) part.out = own.out.data();
  CountingTransfers transfers;
  bounce_answered(transfers, parts, 0, [](const Part& part, std::byte* bytes) {
    EXPECT_EQ(std::memcmp(bytes, part.out, 8), 0);
    bytes[0] = static_cast<std::byte>(part.member);
  });
  EXPECT_EQ(own.in, own.out);
  for (const auto& [parcel, member] : {std::pair(&one, 1), std::pair(&other, 2)}) {
    EXPECT_EQ(parcel->in[0], static_cast<std::byte>(member));
    EXPECT_TRUE(std::equal(parcel->in.begin() + 1, parcel->in.end(), own.out.begin() + 1));
  }
  EXPECT_EQ(transfers.left, 8);
  EXPECT_EQ(transfers.came_back, 24);
}

TEST(Bounce, AnOwnPartThatIsThereStays) {
  Parcel own(6, 6, 3), one(4, 4, 1);
  std::vector<Part> parts{own.part(0), one.part(1)};
  parts.front().in = own.out.data();
  CountingTransfers transfers;
  bounce_answered(transfers, parts, 0, [](const Part&, std::byte*) {});
  EXPECT_TRUE(one.has_returned());
  EXPECT_EQ(transfers.left, 4);
  EXPECT_EQ(transfers.came_back, 4);
}

}  // namespace bounce_test
}  // namespace weft::comm::loopback
