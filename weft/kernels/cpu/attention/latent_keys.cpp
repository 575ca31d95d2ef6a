// Keys and values of latent attention: splits the expansion's output, and joins it with the
// position part that all heads share.
#include <algorithm>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

template <typename T>
struct LatentKeys {
  LatentHeads shape;
  Matrix<T> k, v, kv, position;

  void split_row(std::int64_t t) const;
  void join_row(std::int64_t t) const;
};

template <typename T>
void LatentKeys<T>::split_row(std::int64_t t) const {
  const T* from = kv.row(t);
  T* key = k.row(t);
  T* value = v.row(t);
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    key = std::copy_n(from, shape.content, key);
    key = std::copy_n(position.row(t), shape.position, key);
    value = std::copy_n(from + shape.content, shape.value, value);
    from += shape.content + shape.value;
  }
}

// Every head reads the position part, so its gradient is the sum over heads, ascending.
template <typename T>
void LatentKeys<T>::join_row(std::int64_t t) const {
  const std::int64_t key_width = shape.content + shape.position;
  T* to = kv.row(t);
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    to = std::copy_n(k.row(t) + head * key_width, shape.content, to);
    to = std::copy_n(v.row(t) + head * shape.value, shape.value, to);
  }
  const T* part = k.row(t) + shape.content;
  for (std::int64_t c = 0; c < shape.position; ++c) {
    float sum = 0;
    for (std::int64_t head = 0; head < shape.heads; ++head) sum += load(part[head * key_width + c]);
    store(position.row(t)[c], sum);
  }
}

template <typename T>
LatentKeys<T> job_of(Stream& stream,
                     const Tensor& k,
                     const Tensor& v,
                     const Tensor& kv,
                     const Tensor& position,
                     const LatentHeads& shape) {
  return {.shape = shape,
          .k = matrix<T>(stream, k),
          .v = matrix<T>(stream, v),
          .kv = matrix<T>(stream, kv),
          .position = matrix<T>(stream, position)};
}

}  // namespace

void latent_keys_forward(Stream& stream,
                         Tensor k,
                         Tensor v,
                         Tensor kv,
                         Tensor position,
                         const LatentHeads& shape) {
  with_float(kv.dtype(), [&]<typename T>(As<T>) {
    const LatentKeys<T> job = job_of<T>(stream, k, v, kv, position, shape);
    enqueue(stream, "latent_keys_forward", WorkClass::Memory, [job](Workers& workers) {
      parallel(workers, cut_rows(job.kv.rows, job.kv.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) job.split_row(t);
      });
    });
  });
}

void latent_keys_dgrad(Stream& stream,
                       Tensor dkv,
                       Tensor dposition,
                       Tensor dk,
                       Tensor dv,
                       const LatentHeads& shape) {
  with_float(dkv.dtype(), [&]<typename T>(As<T>) {
    const LatentKeys<T> job = job_of<T>(stream, dk, dv, dkv, dposition, shape);
    enqueue(stream, "latent_keys_dgrad", WorkClass::Memory, [job](Workers& workers) {
      parallel(workers, cut_rows(job.kv.rows, job.kv.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) job.join_row(t);
      });
    });
  });
}

}  // namespace weft::kernels::cpu
