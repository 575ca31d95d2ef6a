// The dispatchers' local copies against memcpy in the same run: permute, un-permute and the local
// expansion. memcpy moves as many bytes on as many threads, a whole part each. The share is that of
// the bytes read and written a second. Rows a second stand beside it: un-permute reads every row
// and writes one for several.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "weft/tensor/dtype.h"

namespace weft::measure {

struct RowCopiesRequest {
  std::int64_t tokens = 4096, experts = 64, topk = 8;
  std::vector<std::int64_t> hidden;
  std::vector<int> threads;
  std::int64_t ranks = 8;  // expansion: on one of them, rows as deepep brings them
  tensor::DType dtype = tensor::DType::BF16;
  int rounds = 5;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(int done, int of)> progress = {};
};

struct RowCopy {
  std::string name;  // permute, unpermute, expansion
  std::int64_t hidden = 0;
  int threads = 1;
  double row_bytes_per_second = 0;                           // of rows moved
  double bytes_per_second = 0, memcpy_bytes_per_second = 0;  // read and written; the best round's
  // Un-permute: where its rows are read in its order, one after another, and nothing is written.
  double read_bytes_per_second = 0;

  double share() const { return bytes_per_second / memcpy_bytes_per_second; }
  double share_of_reading() const { return read_bytes_per_second / memcpy_bytes_per_second; }
};

// Fewer where it was told to stop; no expansion where nothing arrives.
std::vector<RowCopy> bench_row_copies(const RowCopiesRequest& request);

}  // namespace weft::measure
