#include "weft/kernels/cpu/moe/choose_shards.h"

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

// End of the run of a token's slots whose experts are on the same ranks. A slot without an expert
// belongs to the run before it.
std::int64_t end_of_run(const std::int32_t* expert, std::int64_t begin, const Sharding& s) {
  std::int64_t ranks = -1, end = begin;
  for (; end < s.k; ++end) {
    if (expert[end] < 0) continue;
    const std::int64_t own = expert[end] / s.ranks.experts;
    if (ranks >= 0 && own != ranks) break;
    ranks = own;
  }
  return end;
}

// Writes a run's choices rank by rank: all of the first rank, then all of the second.
void choose_in_run(const Sharding& s, std::int64_t token, std::int64_t begin, std::int64_t end) {
  const std::int64_t local = s.ranks.experts, n = s.ranks.shards;
  for (std::int64_t j = begin; j < end; ++j) {
    const std::int64_t slot = token * s.k + j, e = s.expert[slot];
    for (std::int64_t shard = 0; shard < n; ++shard) {
      const std::int64_t place = token * s.k * n + begin * n + shard * (end - begin) + j - begin;
      const std::int64_t number = (e / local * n + shard) * local + e % local;
      s.chosen[place] = static_cast<std::int32_t>(e < 0 ? -1 : number);
      if (s.p != nullptr) s.chosen_p[place] = s.p[slot];
      s.copy[slot * n + shard] = static_cast<std::int32_t>(place);
    }
  }
}

}  // namespace

void choose(const Sharding& s) {
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    for (std::int64_t begin = 0; begin < s.k;) {
      const std::int64_t end = end_of_run(s.expert + t * s.k, begin, s);
      choose_in_run(s, t, begin, end);
      begin = end;
    }
  }
}

void choose_shards(Stream& stream,
                   Tensor chosen_p,
                   Tensor chosen,
                   Tensor copy,
                   Tensor p,
                   Tensor experts,
                   const ExpertShards& ranks) {
  const Sharding sharding{.tokens = experts.dim(0),
                          .k = experts.dim(1),
                          .ranks = ranks,
                          .expert = data<std::int32_t>(stream, experts),
                          .chosen = data<std::int32_t>(stream, chosen),
                          .copy = data<std::int32_t>(stream, copy),
                          .p = data<float>(stream, p),
                          .chosen_p = data<float>(stream, chosen_p)};
  enqueue(stream, "choose_shards", WorkClass::Memory, [=](Workers&) { choose(sharding); });
}

}  // namespace weft::kernels::cpu
