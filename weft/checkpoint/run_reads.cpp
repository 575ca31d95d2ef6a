#include "weft/checkpoint/run_reads.h"

#include <algorithm>
#include <vector>

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::checkpoint {
namespace {

using base::at;
using tensor::Run;

constexpr std::int64_t kMostBetween = 1024;         // largest gap that is read along, in elements
constexpr std::int64_t kMostTogether = 256 * 1024;  // largest read of several runs, in elements

// Number of runs for one read: the leading runs with small gaps.
std::size_t neighbours(std::span<const Run> runs) {
  std::size_t count = 1;
  while (count < runs.size()) {
    const Run &last = runs[count - 1], &next = runs[count];
    const bool is_near = next.global - (last.global + last.count) <= kMostBetween;
    const bool has_room = next.global + next.count - runs.front().global <= kMostTogether;
    if (!is_near || !has_room) break;
    ++count;
  }
  return count;
}

}  // namespace

void read_runs(std::span<const Run> runs, std::span<float> out, const ReadRange& read) {
  std::vector<float> together;
  while (!runs.empty()) {
    const std::span<const Run> now = runs.first(neighbours(runs));
    runs = runs.subspan(now.size());
    const std::int64_t begin = now.front().global;
    if (now.size() == 1) {
      read(begin, out.first(at(now.front().count)));
      out = out.subspan(at(now.front().count));
      continue;
    }
    together.resize(at(now.back().global + now.back().count - begin));
    read(begin, together);
    for (const Run& run : now) {
      std::copy_n(together.begin() + (run.global - begin), run.count, out.begin());
      out = out.subspan(at(run.count));
    }
  }
  CHECK(out.empty(), "{} elements of no run", out.size());
}

}  // namespace weft::checkpoint
