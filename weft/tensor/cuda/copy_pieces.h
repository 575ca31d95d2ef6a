// Batched copies within GPU memory, one launch. nvcc compiles this header: it includes no host
// code.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace weft::tensor::cuda {

inline constexpr int kMostPieces = 128;  // per launch: limit of the kernel's arguments

struct Pieces {
  std::byte* to[kMostPieces];
  const std::byte* from[kMostPieces];
  std::int64_t bytes[kMostPieces];
  int count;
};

// Pieces do not overlap each other or themselves.
cudaError_t launch_copy_pieces(cudaStream_t stream, const Pieces& pieces);

}  // namespace weft::tensor::cuda
