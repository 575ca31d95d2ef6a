// Layout: the number of ranks, and the size of each kind of parallelism. A layout may be illegal;
// `layout_complaints` explains why. A Grid accepts legal ones only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::grid {

inline constexpr std::int64_t kMaxWorld = 1 << 20;

struct Layout {
  std::int64_t world = 1;
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  // The leftmost axis varies fastest in the rank. Names tp, cp, ep, dp and pp once each.
  std::string order = "tp-cp-ep-dp-pp";
  // Experts per MoE layer; nullopt: not checked. All ep ranks must own equally many.
  std::optional<std::int64_t> num_experts = std::nullopt;
};

// All violated constraints, each with numbers and fix; empty: legal.
std::vector<std::string> layout_complaints(const Layout& layout);

// Minimum number of ranks for both views: pp * lcm(tp * cp, etp * ep). kMaxWorld + 1: more than
// kMaxWorld, or a size is below 1.
std::int64_t fewest_ranks(const Layout& layout);

}  // namespace weft::grid
