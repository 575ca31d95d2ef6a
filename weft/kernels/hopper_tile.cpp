#include "weft/kernels/hopper_tile.h"

#include "weft/base/check.h"
#include "weft/base/text.h"

namespace weft::kernels::hopper {

using base::text;
using Verdict = TileChoice::Verdict;

std::string_view word(Pass pass) {
  switch (pass) {
    case Pass::Forward:
      return "forward";
    case Pass::Dgrad:
      return "dgrad";
    case Pass::Wgrad:
      return "wgrad";
  }
  UNREACHABLE("a pass");
}

std::string to_text(const Tile& tile) {
  return text("{} x {} x {}, {} stages", tile.m, tile.n, tile.k, tile.stages);
}

TileChoice choose_tile(const TileDesc& desc, const Card& card) {
  TileChoice choice;
  for (const auto& [tile, column_cost] : candidates_of(desc.pass)) {
    TileChoice::Row& row = choice.rows[choice.count];
    row.tile = tile;
    row.covered = (desc.n + tile.n - 1) / tile.n * tile.n;
    row.cost = row.covered * column_cost;
    row.shared_bytes = shared_bytes(desc.pass, tile);
    if (!card.is_hopper) {
      row.verdict = Verdict::NoHopper;
    } else if (row.shared_bytes > card.shared_bytes) {
      row.verdict = Verdict::TooMuchSharedMemory;
    } else if (choice.best < 0 || row.cost < choice.rows[std::size_t(choice.best)].cost) {
      choice.best = int(choice.count);
    }
    ++choice.count;
  }
  if (choice.best >= 0) choice.rows[std::size_t(choice.best)].verdict = Verdict::Best;
  return choice;
}

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::Best:
      return "best";
    case Verdict::Slower:
      return "slower";
    case Verdict::NoHopper:
      return "rejected: the card is no Hopper, or this build has no kernels for one";
    case Verdict::TooMuchSharedMemory:
      return "rejected: more shared memory than the card gives a block";
  }
  UNREACHABLE("a verdict");
}

std::string to_text(const TileDesc& desc, const TileChoice& choice) {
  std::string all = text("{}, {} columns\n", word(desc.pass), desc.n);
  for (const TileChoice::Row& row : choice.all()) {
    all += text("  {}: {} columns covered, {} bytes of shared memory, cost {}, {}\n",
                to_text(row.tile),
                row.covered,
                row.shared_bytes,
                row.cost,
                word(row.verdict));
  }
  return all;
}

}  // namespace weft::kernels::hopper
