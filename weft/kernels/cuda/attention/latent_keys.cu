// Keys and values of latent attention: split from the result of the expansion, and joined with the
// one position part that all heads share.
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"

namespace weft::kernels::cuda {
namespace latent_keys_kernels {
namespace {

constexpr int kThreads = 256;

// A block takes whole rows.
template <typename T>
__global__ void split_rows(Matrix<T> k,
                           Matrix<T> v,
                           Matrix<T> kv,
                           Matrix<T> position,
                           LatentHeads shape) {
  const std::int64_t key_width = shape.content + shape.position;
  const std::int64_t width = shape.content + shape.value;
  for (std::int64_t t = blockIdx.x; t < kv.rows; t += gridDim.x) {
    for (std::int64_t i = threadIdx.x; i < k.columns; i += blockDim.x) {
      const std::int64_t head = i / key_width, c = i % key_width;
      k.row(t)[i] =
          c < shape.content ? kv.row(t)[head * width + c] : position.row(t)[c - shape.content];
    }
    for (std::int64_t i = threadIdx.x; i < v.columns; i += blockDim.x) {
      const std::int64_t head = i / shape.value, c = i % shape.value;
      v.row(t)[i] = kv.row(t)[head * width + shape.content + c];
    }
  }
}

// Gradient of the position part: every head read it, so that it is their sum, heads ascending.
template <typename T>
__global__ void join_rows(Matrix<T> dkv,
                          Matrix<T> dposition,
                          Matrix<T> dk,
                          Matrix<T> dv,
                          LatentHeads shape) {
  const std::int64_t key_width = shape.content + shape.position;
  const std::int64_t width = shape.content + shape.value;
  for (std::int64_t t = blockIdx.x; t < dkv.rows; t += gridDim.x) {
    for (std::int64_t i = threadIdx.x; i < dkv.columns; i += blockDim.x) {
      const std::int64_t head = i / width, c = i % width;
      dkv.row(t)[i] = c < shape.content ? dk.row(t)[head * key_width + c]
                                        : dv.row(t)[head * shape.value + c - shape.content];
    }
    const T* part = dk.row(t) + shape.content;
    for (std::int64_t c = threadIdx.x; c < shape.position; c += blockDim.x) {
      float sum = 0;
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        sum += load(part[head * key_width + c]);
      }
      store(dposition.row(t)[c], sum);
    }
  }
}

}  // namespace
}  // namespace latent_keys_kernels

void latent_keys_forward(Stream& stream,
                         Tensor k,
                         Tensor v,
                         Tensor kv,
                         Tensor position,
                         const LatentHeads& shape) {
  with_float(kv.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "latent_keys_forward",
            WorkClass::Memory,
            {blocks_for(kv.dim(0), 1), latent_keys_kernels::kThreads},
            latent_keys_kernels::split_rows<T>,
            matrix<T>(stream, k),
            matrix<T>(stream, v),
            matrix<T>(stream, kv),
            matrix<T>(stream, position),
            shape);
  });
}

void latent_keys_dgrad(Stream& stream,
                       Tensor dkv,
                       Tensor dposition,
                       Tensor dk,
                       Tensor dv,
                       const LatentHeads& shape) {
  with_float(dkv.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "latent_keys_dgrad",
            WorkClass::Memory,
            {blocks_for(dkv.dim(0), 1), latent_keys_kernels::kThreads},
            latent_keys_kernels::join_rows<T>,
            matrix<T>(stream, dkv),
            matrix<T>(stream, dposition),
            matrix<T>(stream, dk),
            matrix<T>(stream, dv),
            shape);
  });
}

}  // namespace weft::kernels::cuda
