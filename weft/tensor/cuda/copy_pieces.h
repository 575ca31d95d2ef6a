// Many copies inside the card's memory by one launch. A header that kernels are compiled with: it
// includes nothing of the host's.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace weft::tensor::cuda {

inline constexpr int kMostPieces = 128;  // of one launch: what its arguments have room for

struct Pieces {
  std::byte* to[kMostPieces];
  const std::byte* from[kMostPieces];
  std::int64_t bytes[kMostPieces];
  int count;
};

// None overlaps another or itself.
cudaError_t launch_copy_pieces(cudaStream_t stream, const Pieces& pieces);

}  // namespace weft::tensor::cuda
