// Layout of parameters in a contiguous buffer: in reverse order of use, roughly the order in which
// gradients become ready. The buffer is cut into buckets that are reduced as a whole.
//
// Every parameter starts at a multiple of 64 elements. If ranks share the buckets (ranks of one
// distributed optimizer instance), each bucket ends at a multiple of lcm(ranks, 128). It then
// divides into equal ranges, one per rank, regardless of parameter boundaries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/slice.h"

namespace weft::derive {

enum class Chunks { Together, Apart };  // may a bucket mix parameters of several chunks?

struct BufferRules {
  // Elements at which a bucket is full; 0: all in one bucket. With several chunks, only the first
  // is cut.
  std::int64_t bucket_size = 0;
  // Maximum size as a fraction: a bucket holds at most 1 / portions of all elements, or one larger
  // parameter.
  std::int64_t portions = 1;
  std::int64_t buckets = 0;  // approximate number of buckets, in place of their size
  std::int64_t shards = 1;   // ranks that share every bucket
  Chunks chunks = Chunks::Together;
};

enum class Company { Any, Alone };  // Alone: a separate bucket (a tied table)

// Parameter, in order of use.
struct BufferItem {
  std::int64_t elements = 0;
  Company company = Company::Any;
  int chunk = 0;  // chunk of the rank; ascending
};

struct Bucket {
  base::Range elements;    // range of the buffer, including padding
  std::vector<int> items;  // in order of place
  int chunk = 0;
};

struct BufferLayout {
  std::vector<std::int64_t> offsets;  // by item
  std::vector<Bucket> buckets;        // in order of place: last used first
  std::int64_t elements = 0;          // including all padding
  std::int64_t shards = 1;

  // A rank's range of a bucket.
  base::Range shard(const Bucket& bucket, std::int64_t rank) const;
};

BufferLayout lay_out(std::span<const BufferItem> items, const BufferRules& rules);

}  // namespace weft::derive
