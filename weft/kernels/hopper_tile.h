// Output tiles of the grouped GEMM for Hopper (kernels/cuda/hopper), and the choice among them.
// Pure: the choice can be made, printed and tested without a GPU.
//
// Another tile is another line in kRowTiles or kWgradTiles. The kernel derives all its constants
// from it (kernels/cuda/hopper/traits.h), and the compiler rejects values that it cannot serve.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft::kernels::hopper {

// Products of the experts. Forward: y = x w^T. Dgrad: dx = dy w. Wgrad: dw = dy^T x.
enum class Pass { Forward, Dgrad, Wgrad };
std::string_view word(Pass pass);

// Division of work between the two consumer warpgroups. Cooperative: they share an output tile,
// half of its rows each. PingPong: each has its own tile, and one multiplies while the other
// stores.
enum class Schedule { Cooperative, PingPong };
constexpr Schedule schedule_of(Pass pass) {
  return pass == Pass::Wgrad ? Schedule::PingPong : Schedule::Cooperative;
}

// Output tile of a block, and the resources of the block. A stage holds one k-block of both
// factors.
struct Tile {
  int m = 0, n = 0, k = 0;     // rows and columns of the output tile; depth of a k-block
  int stages = 0;              // stages of the pipeline in shared memory
  int cluster = 0;             // blocks of a cluster, each of which loads its share of b for all
  int consumer_registers = 0;  // per thread of a consumer warpgroup

  friend constexpr bool operator==(const Tile&, const Tile&) = default;
};
std::string to_text(const Tile& tile);  // "128 x 256 x 64, 4 stages"

// TMA boxes: 64 rows of 128 bytes, the span of the swizzle.
inline constexpr int kBoxRowBytes = 128, kBoxRows = 64;
inline constexpr int kBoxBytes = kBoxRowBytes * kBoxRows;

inline constexpr int kConsumers = 2;  // consumer warpgroups of a block
// Boxes of shared memory in which a consumer's epilogue stages its results.
constexpr int epilogue_boxes(Schedule schedule) {
  return schedule == Schedule::Cooperative ? 2 : 4;
}

// Dynamic shared memory of a block: stages, boxes of the epilogue, mbarriers (a full and an empty
// one per stage, two per consumer).
constexpr int shared_bytes(Pass pass, const Tile& tile) {
  constexpr int kElement = 2, kBarrier = 8;
  return tile.stages * (tile.m + tile.n) * tile.k * kElement +
         kConsumers * epilogue_boxes(schedule_of(pass)) * kBoxBytes +
         2 * (tile.stages + kConsumers) * kBarrier;
}
inline constexpr int kMostSharedBytes = 232448;  // maximum of a block on compute capability 9.0

struct Candidate {
  Tile tile;
  int column_cost = 0;  // relative time per covered column of the result
};
// Costs of a column, from a model: wgmma reads 64 + n rows of shared memory for n columns, which
// are 15, 16 and 18 twelfths of a row per column for 256, 192 and 128 columns.
inline constexpr std::array kRowTiles{Candidate{{128, 256, 64, 4, 2, 232}, 15},
                                      Candidate{{128, 192, 64, 4, 2, 232}, 16},
                                      Candidate{{128, 128, 64, 6, 2, 232}, 18}};
// A ping-pong consumer holds the accumulators of 128 rows, so that 192 columns are its widest tile.
// Its tiles keep the ratio of 5 to 6.
inline constexpr std::array kWgradTiles{Candidate{{128, 192, 64, 4, 2, 232}, 15},
                                        Candidate{{128, 128, 64, 5, 2, 232}, 18}};
constexpr std::span<const Candidate> candidates_of(Pass pass) {
  if (pass == Pass::Wgrad) return kWgradTiles;
  return kRowTiles;
}

// Properties of a card that the kernel depends on.
struct Card {
  bool is_hopper = false;  // compute capability 9.0, and this build has kernels for it
  int multiprocessors = 0;
  int shared_bytes = 0;  // that a block may ask for
};

struct TileDesc {
  Pass pass = Pass::Forward;
  std::int64_t n = 0;  // columns of the result
};

// Costs of all candidates, in the order of candidates_of. The best has the lowest cost; the first
// wins a tie.
struct TileChoice {
  enum class Verdict { Best, Slower, NoHopper, TooMuchSharedMemory };
  struct Row {
    Tile tile;
    std::int64_t covered = 0;  // columns, in whole tiles
    std::int64_t cost = 0;
    int shared_bytes = 0;
    Verdict verdict = Verdict::Slower;
  };
  static constexpr std::size_t kMost = 4;

  std::array<Row, kMost> rows{};
  std::size_t count = 0;
  int best = -1;  // -1: the card can run none

  std::span<const Row> all() const { return {rows.data(), count}; }
};
static_assert(kRowTiles.size() <= TileChoice::kMost && kWgradTiles.size() <= TileChoice::kMost);

TileChoice choose_tile(const TileDesc& desc, const Card& card);
std::string_view word(TileChoice::Verdict verdict);
// One line per candidate, under a line for the product.
std::string to_text(const TileDesc& desc, const TileChoice& choice);

}  // namespace weft::kernels::hopper
