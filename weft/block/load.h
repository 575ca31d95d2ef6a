// Bytes as linear functions of a rank's load by a micro-batch.
#pragma once

#include <cstdint>

namespace weft::block {

inline constexpr std::int64_t kFp32 = 4, kInt32 = 4, kInt64 = 8;

// Tokens and rows that a micro-batch, or a slice of it, brings to a rank in a MoE layer.
struct Load {
  std::int64_t tokens = 0;  // the rank's own: 1 / tp of its tensor-parallel group's
  std::int64_t rows = 0;  // kept bytes: rows for its experts; sent bytes: rows that leave the rank
  std::int64_t copies = 0;   // arriving copies, if a token is sent once for several experts
  std::int64_t passing = 0;  // arriving rows that the node forwards (hybridep)
  std::int64_t onward = 0;   // rows forwarded from these
};

struct Bytes {
  std::int64_t fixed = 0;
  std::int64_t per_token = 0;
  std::int64_t per_row = 0;
  std::int64_t per_copy = 0;
  std::int64_t per_passing = 0;
  std::int64_t per_onward = 0;

  std::int64_t of(const Load& load) const {
    return fixed + per_token * load.tokens + per_row * load.rows + per_copy * load.copies +
           per_passing * load.passing + per_onward * load.onward;
  }
  Bytes& operator+=(const Bytes& more) {
    fixed += more.fixed;
    per_token += more.per_token;
    per_row += more.per_row;
    per_copy += more.per_copy;
    per_passing += more.per_passing;
    per_onward += more.per_onward;
    return *this;
  }
  friend Bytes operator+(Bytes a, const Bytes& b) { return a += b; }
  bool operator==(const Bytes&) const = default;
};

}  // namespace weft::block
