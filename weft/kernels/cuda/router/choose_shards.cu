// Chooses the ranks that share an expert, once per chosen expert. A thread takes a token.
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"

namespace weft::kernels::cuda {
namespace choose_shards_kernels {
namespace {

constexpr int kThreads = 128;

struct Sharding {
  std::int64_t tokens, k;
  ExpertShards ranks;
  const std::int32_t* expert;  // (slots)
  const float* p;
  std::int32_t *chosen, *copy;
  float* chosen_p;
};

// Run: slots of one token whose experts the same ranks share. Slots without an expert belong to the
// run before them.
__device__ std::int64_t end_of_run(const std::int32_t* expert,
                                   std::int64_t begin,
                                   const Sharding& s) {
  std::int64_t ranks = -1, end = begin;
  for (; end < s.k; ++end) {
    if (expert[end] < 0) continue;
    const std::int64_t own = expert[end] / s.ranks.experts;
    if (ranks >= 0 && own != ranks) break;
    ranks = own;
  }
  return end;
}

// Within a run: all choices of the first rank, then all of the second.
__device__ void choose_in_run(const Sharding& s,
                              std::int64_t token,
                              std::int64_t begin,
                              std::int64_t end) {
  const std::int64_t local = s.ranks.experts, n = s.ranks.shards;
  for (std::int64_t j = begin; j < end; ++j) {
    const std::int64_t slot = token * s.k + j, e = s.expert[slot];
    for (std::int64_t shard = 0; shard < n; ++shard) {
      const std::int64_t place = token * s.k * n + begin * n + shard * (end - begin) + j - begin;
      const std::int64_t number = (e / local * n + shard) * local + e % local;
      s.chosen[place] = std::int32_t(e < 0 ? -1 : number);
      s.chosen_p[place] = s.p[slot];
      s.copy[slot * n + shard] = std::int32_t(place);
    }
  }
}

__global__ void choose(Sharding s) {
  for (std::int64_t t = first_index(); t < s.tokens; t += index_step()) {
    for (std::int64_t begin = 0; begin < s.k;) {
      const std::int64_t end = end_of_run(s.expert + t * s.k, begin, s);
      choose_in_run(s, t, begin, end);
      begin = end;
    }
  }
}

}  // namespace
}  // namespace choose_shards_kernels

void choose_shards(Stream& stream,
                   Tensor chosen_p,
                   Tensor chosen,
                   Tensor copy,
                   Tensor p,
                   Tensor experts,
                   const ExpertShards& ranks) {
  const choose_shards_kernels::Sharding sharding{.tokens = experts.dim(0),
                                                 .k = experts.dim(1),
                                                 .ranks = ranks,
                                                 .expert = data<std::int32_t>(stream, experts),
                                                 .p = data<float>(stream, p),
                                                 .chosen = data<std::int32_t>(stream, chosen),
                                                 .copy = data<std::int32_t>(stream, copy),
                                                 .chosen_p = data<float>(stream, chosen_p)};
  enqueue(stream,
          "choose_shards",
          WorkClass::Memory,
          {blocks_for(sharding.tokens, choose_shards_kernels::kThreads),
           choose_shards_kernels::kThreads},
          choose_shards_kernels::choose,
          sharding);
}

}  // namespace weft::kernels::cuda
