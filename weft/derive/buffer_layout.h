// How parameters lie in a contiguous buffer: in reverse order of use (roughly the order in which
// their gradients become ready), cut into buckets whose gradients are summed together.
//
// Every parameter starts at a multiple of 64 elements. Where ranks share the buckets (those of an
// instance of a distributed optimizer), each bucket ends at a multiple of lcm(ranks, 128), so that
// it falls into equal ranges, one a rank, without regard to where parameters begin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/slice.h"

namespace weft::derive {

enum class Chunks { Together, Apart };  // whether a bucket may hold parameters of several

struct BufferRules {
  // A bucket is full when it has so many elements; 0: all in one. Of several chunks only the first
  // is cut.
  std::int64_t bucket_size = 0;
  // Nor does it hold more than one of so many equal portions of all, or one larger parameter.
  std::int64_t portions = 1;
  std::int64_t buckets = 0;  // instead of their size: so many, more or less
  std::int64_t shards = 1;   // ranks that share every bucket
  Chunks chunks = Chunks::Together;
};

enum class Company { Any, Alone };  // Alone: a bucket of its own (a tied table)

// One parameter, in order of use.
struct BufferItem {
  std::int64_t elements = 0;
  Company company = Company::Any;
  int chunk = 0;  // of the rank; ascending
};

struct Bucket {
  base::Range elements;    // of the buffer, with its padding
  std::vector<int> items;  // in the order they lie
  int chunk = 0;
};

struct BufferLayout {
  std::vector<std::int64_t> offsets;  // of each item
  std::vector<Bucket> buckets;        // in the order they lie: the last used first
  std::int64_t elements = 0;          // with all padding
  std::int64_t shards = 1;

  // What a rank has of a bucket.
  base::Range shard(const Bucket& bucket, std::int64_t rank) const;
};

BufferLayout lay_out(std::span<const BufferItem> items, const BufferRules& rules);

}  // namespace weft::derive
