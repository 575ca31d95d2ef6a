#include "weft/tensor/cuda/copy_pieces.h"

namespace weft::tensor::cuda {
namespace piece_kernels {
namespace {

constexpr int kThreads = 512;
constexpr int kAhead = 8;                  // loads in flight per thread before it stores
constexpr std::int64_t kChunk = 64 << 10;  // bytes per block
constexpr std::int64_t kMostBlocks = 132;  // one per multiprocessor of an H200

std::int64_t chunks_of(std::int64_t bytes) { return (bytes + kChunk - 1) / kChunk; }

// Index of each piece's first chunk; the last entry is the total number of chunks.
struct Chunks {
  int first[kMostPieces + 1];
};

template <typename T>
__device__ void copy_as(std::byte* to, const std::byte* from, std::int64_t bytes) {
  const int words = static_cast<int>(bytes / sizeof(T));
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  for (int i = threadIdx.x; i < words; i += kThreads * kAhead) {
    T values[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (i + k * kThreads < words) values[k] = __ldcs(source + i + k * kThreads);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (i + k * kThreads < words) __stcs(target + i + k * kThreads, values[k]);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    copy_pieces(const __grid_constant__ Pieces pieces, const __grid_constant__ Chunks chunks) {
  for (int chunk = blockIdx.x; chunk < chunks.first[pieces.count]; chunk += gridDim.x) {
    int low = 0, high = pieces.count;  // the last piece that begins at or before the chunk
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (chunks.first[middle] <= chunk ? low : high) = middle;
    }
    const std::int64_t at = (chunk - chunks.first[low]) * kChunk;
    const std::int64_t left = pieces.bytes[low] - at, bytes = left < kChunk ? left : kChunk;
    std::byte* to = pieces.to[low] + at;
    const std::byte* from = pieces.from[low] + at;
    const auto bits = reinterpret_cast<std::uintptr_t>(to) |
                      reinterpret_cast<std::uintptr_t>(from) | static_cast<std::uintptr_t>(bytes);
    if (bits % sizeof(int4) == 0) {
      copy_as<int4>(to, from, bytes);
    } else if (bits % sizeof(int) == 0) {
      copy_as<int>(to, from, bytes);
    } else {
      copy_as<char>(to, from, bytes);
    }
  }
}

}  // namespace
}  // namespace piece_kernels

cudaError_t launch_copy_pieces(cudaStream_t stream, const Pieces& pieces) {
  using namespace piece_kernels;
  Chunks chunks{};
  std::int64_t all = 0;
  for (int i = 0; i < pieces.count; ++i) {
    chunks.first[i] = static_cast<int>(all);
    all += chunks_of(pieces.bytes[i]);
  }
  chunks.first[pieces.count] = static_cast<int>(all);
  if (all == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(all < kMostBlocks ? all : kMostBlocks);
  copy_pieces<<<blocks, kThreads, 0, stream>>>(pieces, chunks);
  return cudaGetLastError();
}

}  // namespace weft::tensor::cuda
