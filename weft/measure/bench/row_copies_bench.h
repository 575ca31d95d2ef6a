// Local copies of the dispatchers (permute, un-permute, local expansion) against memcpy in the same
// run. memcpy moves equal bytes on equal threads, one contiguous part each. The share compares
// bytes read and written per second. Rows per second are listed too: un-permute reads several rows
// and writes one.
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
  std::int64_t ranks = 8;  // expansion: on one of them, with rows as deepep delivers them
  tensor::DType dtype = tensor::DType::BF16;
  int rounds = 5;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(int done, int of)> progress = {};
};

struct RowCopy {
  std::string name;  // "permute", "unpermute", "expansion"
  std::int64_t hidden = 0;
  int threads = 1;
  double row_bytes_per_second = 0;                           // moved rows
  double bytes_per_second = 0, memcpy_bytes_per_second = 0;  // read and written; best round
  // Un-permute: reading its rows in its order, one after another, without writes.
  double read_bytes_per_second = 0;

  double share() const { return bytes_per_second / memcpy_bytes_per_second; }
  double share_of_reading() const { return read_bytes_per_second / memcpy_bytes_per_second; }
};

// No expansion if no row arrives. Throws Stopped when told to stop.
std::vector<RowCopy> bench_row_copies(const RowCopiesRequest& request);

}  // namespace weft::measure
