// RMSNorm over groups of N columns: y = x * rstd * w. Group i of all is group i mod G of row i / G.
#include <algorithm>

#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/block_sums.h"
#include "weft/kernels/cuda/operations.h"
#include "weft/tensor/cuda/call.h"

namespace weft::kernels::cuda {
namespace {

constexpr std::int64_t kMostThreads = 256;
constexpr std::int64_t kElementsPerThread = 4;

// The weight gradient: groups of one partial sum at least, partial sums at most, and threads of a
// block that takes as many columns of one of them.
constexpr std::int64_t kGroupsPerPart = 16;
constexpr std::int64_t kMostParts = 1024;
constexpr std::int64_t kPartColumns = 128;
// A block that adds partial sums: columns, and runs of parts a column.
constexpr int kSumColumns = kWarp;
constexpr int kSumRuns = 8;

struct Groups {
  std::int64_t width, per_row, count;
};

template <typename T>
__device__ T* group_of(const Matrix<T>& x, const Groups& groups, std::int64_t i) {
  return x.row(i / groups.per_row) + i % groups.per_row * groups.width;
}

// A block takes whole groups.
template <typename T>
__global__ void forward(Matrix<T> y,
                        float* rstd,
                        Matrix<T> x,
                        const T* w,
                        Groups groups,
                        float epsilon) {
  for (std::int64_t i = blockIdx.x; i < groups.count; i += gridDim.x) {
    const T* from = group_of(x, groups, i);
    T* to = group_of(y, groups, i);
    float squares = 0;
    for (std::int64_t c = threadIdx.x; c < groups.width; c += blockDim.x) {
      squares += load(from[c]) * load(from[c]);
    }
    squares = block_sum(squares);
    const float r = 1.0f / sqrtf(squares / static_cast<float>(groups.width) + epsilon);
    if (threadIdx.x == 0) rstd[i] = r;
    for (std::int64_t c = threadIdx.x; c < groups.width; c += blockDim.x) {
      store(to[c], load(from[c]) * r * load(w[c]));
    }
  }
}

// dx = rstd * (w dy - x rstd^2 mean(w dy x)).
template <typename T>
__global__ void dgrad(Matrix<T> dx,
                      Matrix<T> dy,
                      Matrix<T> x,
                      const T* w,
                      const float* rstd,
                      Groups groups) {
  for (std::int64_t i = blockIdx.x; i < groups.count; i += gridDim.x) {
    const T *dys = group_of(dy, groups, i), *xs = group_of(x, groups, i);
    T* dxs = group_of(dx, groups, i);
    float dot = 0;
    for (std::int64_t c = threadIdx.x; c < groups.width; c += blockDim.x) {
      dot += load(w[c]) * load(dys[c]) * load(xs[c]);
    }
    dot = block_sum(dot);
    const float r = rstd[i];
    const float pull = dot / static_cast<float>(groups.width) * r * r;
    for (std::int64_t c = threadIdx.x; c < groups.width; c += blockDim.x) {
      store(dxs[c], r * (load(w[c]) * load(dys[c]) - load(xs[c]) * pull));
    }
  }
}

// Part blockIdx.x of the groups, a thread a column: parts (parts, width).
template <typename T>
__global__ void sum_part(float* parts,
                         Matrix<T> dy,
                         Matrix<T> x,
                         const float* rstd,
                         Groups groups,
                         std::int64_t groups_per_part) {
  const std::int64_t column = std::int64_t(blockIdx.y) * blockDim.x + threadIdx.x;
  if (column >= groups.width) return;
  const std::int64_t begin = blockIdx.x * groups_per_part;
  const std::int64_t end = min(groups.count, begin + groups_per_part);
  float sum = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    sum += load(group_of(dy, groups, i)[column]) * load(group_of(x, groups, i)[column]) * rstd[i];
  }
  parts[blockIdx.x * groups.width + column] = sum;
}

// Adds the parts of each column, to dw or in its place: every kSumRuns-th part in order, then those
// runs in order.
__global__ void add_parts(float* dw,
                          const float* parts,
                          std::int64_t part_count,
                          std::int64_t width,
                          Write write) {
  __shared__ float runs[kSumRuns][kSumColumns];
  const std::int64_t column = std::int64_t(blockIdx.x) * kSumColumns + threadIdx.x;
  float sum = 0;
  if (column < width) {
    for (std::int64_t i = threadIdx.y; i < part_count; i += kSumRuns) {
      sum += parts[i * width + column];
    }
  }
  runs[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= width) return;
  for (int run = 1; run < kSumRuns; ++run) sum += runs[run][threadIdx.x];
  dw[column] = write == Write::Assign ? sum : dw[column] + sum;
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Groups groups_of(const Tensor& rstd, std::int64_t width) {
  return {.width = width, .per_row = rstd.dim(1), .count = rstd.elements()};
}

Grid groups_grid(const Groups& groups) {
  const std::int64_t warps = divided_up(groups.width, kElementsPerThread * kWarp);
  const auto threads = static_cast<unsigned>(std::min(warps * kWarp, kMostThreads));
  return {blocks_for(groups.count, 1), threads};
}

}  // namespace

void rms_norm_forward(Stream& stream, Tensor y, Tensor rstd, Tensor x, Tensor w, float epsilon) {
  const Groups groups = groups_of(rstd, w.dim(0));
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "rms_norm_forward",
            WorkClass::Memory,
            groups_grid(groups),
            forward<T>,
            matrix<T>(stream, y),
            data<float>(stream, rstd),
            matrix<T>(stream, x),
            data<T>(stream, w),
            groups,
            epsilon);
  });
}

void rms_norm_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor x, Tensor w, Tensor rstd) {
  const Groups groups = groups_of(rstd, w.dim(0));
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "rms_norm_dgrad",
            WorkClass::Memory,
            groups_grid(groups),
            dgrad<T>,
            matrix<T>(stream, dx),
            matrix<T>(stream, dy),
            matrix<T>(stream, x),
            data<T>(stream, w),
            data<float>(stream, rstd),
            groups);
  });
}

// Each part of the groups is summed on its own; the parts are added in a fixed order.
void rms_norm_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Tensor rstd, Write write) {
  const Groups groups = groups_of(rstd, dw.dim(0));
  const std::int64_t n = groups.width;
  const std::int64_t room = tensor::cuda::kWorkspaceBytes / std::int64_t(sizeof(float)) / n;
  CHECK(room > 0, "a weight of {} elements", n);
  const std::int64_t per_part =
      std::max(kGroupsPerPart, divided_up(groups.count, std::min(kMostParts, room)));
  const std::int64_t part_count = divided_up(groups.count, per_part);
  float* parts = scratch<float>(stream, part_count * n);
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    float* dws = data<float>(stream, dw);
    const Matrix<T> dys = matrix<T>(stream, dy), xs = matrix<T>(stream, x);
    const float* rstds = data<float>(stream, rstd);
    const std::int64_t columns = std::min(kPartColumns, divided_up(n, kWarp) * kWarp);
    const dim3 grid(static_cast<unsigned>(part_count),
                    static_cast<unsigned>(divided_up(n, columns)));
    const auto sums = static_cast<unsigned>(divided_up(n, kSumColumns));
    enqueue_all(stream, "rms_norm_wgrad", WorkClass::Memory, [=](cudaStream_t handle) {
      if (part_count == 0 && write == Write::Accumulate) return;
      if (part_count > 0) {
        sum_part<T><<<grid, static_cast<unsigned>(columns), 0, handle>>>(parts,
                                                                         dys,
                                                                         xs,
                                                                         rstds,
                                                                         groups,
                                                                         per_part);
      }
      add_parts<<<sums, dim3(kSumColumns, kSumRuns), 0, handle>>>(dws, parts, part_count, n, write);
    });
  });
}

}  // namespace weft::kernels::cuda
