// RMSNorm over groups of N columns: y = x * rstd * w.
#include <type_traits>

#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/packs.h"
#include "weft/kernels/cuda/norm/column_sums.h"

namespace weft::kernels::cuda {
namespace rms_norm_kernels {
namespace {

constexpr std::int64_t kWantedPacks = 2;  // per thread, if a warp has room for more
constexpr int kGroupsAtOnce = 4;          // that a thread has in flight while it sums columns

template <typename T>
__device__ float squares_of(const Pack<T>& x) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kPack<T>; ++i) sum += x[i] * x[i];
  return sum;
}

template <typename T>
__device__ float product_of(const Pack<T>& w, const Pack<T>& dy, const Pack<T>& x) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kPack<T>; ++i) sum += w[i] * dy[i] * x[i];
  return sum;
}

template <Access kAccess, typename T>
__device__ void store_scaled(const Stretch<kAccess, T>& to,
                             std::int64_t p,
                             const Pack<T>& x,
                             const Pack<T>& w,
                             float r) {
  float y[kPack<T>];
#pragma unroll
  for (int i = 0; i < kPack<T>; ++i) y[i] = x[i] * r * w[i];
  to.store(p, y);
}

// A thread holds kHeld packs of its group, and of the weights, between the two passes. A wider
// group is read again.
template <Access kAccess, int kHeld, typename T>
__global__ void __launch_bounds__(kMostTeamThreads)
    forward(Matrix<T> y, float* rstd, Matrix<T> x, T* w, Groups groups, float epsilon, int team) {
  const int lane = team_lane(team);
  const std::int64_t packs = divided_up(groups.width, kPack<T>);
  const Stretch<kAccess, T> weights{w, groups.width};
  for (std::int64_t round = first_round(team); round < groups.count; round += round_step(team)) {
    const std::int64_t i = round + team_index(team);
    const std::int64_t width = i < groups.count ? groups.width : 0;
    const std::int64_t group = i < groups.count ? i : 0;
    const Stretch<kAccess, T> from{group_of(x, groups, group), width};
    const Stretch<kAccess, T> to{group_of(y, groups, group), width};
    Pack<T> held[kHeld], held_w[kHeld];
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      held[j] = from.load(lane + j * team);
      held_w[j] = weights.load(lane + j * team);
    }
    float squares = 0;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) squares += squares_of(held[j]);
    for (std::int64_t p = lane + kHeld * team; p < packs; p += team) {
      squares += squares_of(from.load(p));
    }
    squares = team_sum(squares, team);
    const float r = 1.0f / sqrtf(squares / static_cast<float>(groups.width) + epsilon);
    if (i < groups.count && lane == 0) rstd[i] = r;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) store_scaled(to, lane + j * team, held[j], held_w[j], r);
    for (std::int64_t p = lane + kHeld * team; p < packs; p += team) {
      store_scaled(to, p, from.load(p), weights.load(p), r);
    }
  }
}

template <Access kAccess, typename T>
__device__ void store_gradient(const Stretch<kAccess, T>& to,
                               std::int64_t p,
                               const Pack<T>& dy,
                               const Pack<T>& x,
                               const Pack<T>& w,
                               const Pack<T>& residual,
                               float r,
                               float pull) {
  float dx[kPack<T>];
#pragma unroll
  for (int i = 0; i < kPack<T>; ++i) dx[i] = r * (w[i] * dy[i] - x[i] * pull) + residual[i];
  to.store(p, dx);
}

// dx = rstd * (w dy - x rstd^2 mean(w dy x)) + residual. The residual may have no data.
template <Access kAccess, int kHeld, typename T>
__global__ void __launch_bounds__(kMostTeamThreads) dgrad(Matrix<T> dx,
                                                          Matrix<T> dy,
                                                          Matrix<T> x,
                                                          Matrix<T> residual,
                                                          T* w,
                                                          const float* rstd,
                                                          Groups groups,
                                                          int team) {
  const int lane = team_lane(team);
  const std::int64_t packs = divided_up(groups.width, kPack<T>);
  const Stretch<kAccess, T> weights{w, groups.width};
  for (std::int64_t round = first_round(team); round < groups.count; round += round_step(team)) {
    const std::int64_t i = round + team_index(team);
    const std::int64_t width = i < groups.count ? groups.width : 0;
    const std::int64_t group = i < groups.count ? i : 0;
    const Stretch<kAccess, T> dys{group_of(dy, groups, group), width};
    const Stretch<kAccess, T> xs{group_of(x, groups, group), width};
    const Stretch<kAccess, T> past{group_of(residual, groups, group),
                                   residual.data == nullptr ? 0 : width};
    const Stretch<kAccess, T> to{group_of(dx, groups, group), width};
    const float r = rstd[group];
    Pack<T> held_dy[kHeld], held_x[kHeld], held_w[kHeld], held_past[kHeld];
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      held_dy[j] = dys.load(lane + j * team);
      held_x[j] = xs.load(lane + j * team);
      held_w[j] = weights.load(lane + j * team);
      held_past[j] = past.load(lane + j * team);
    }
    float dot = 0;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) dot += product_of(held_w[j], held_dy[j], held_x[j]);
    for (std::int64_t p = lane + kHeld * team; p < packs; p += team) {
      dot += product_of(weights.load(p), dys.load(p), xs.load(p));
    }
    dot = team_sum(dot, team);
    const float pull = dot / static_cast<float>(groups.width) * r * r;
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      store_gradient(to, lane + j * team, held_dy[j], held_x[j], held_w[j], held_past[j], r, pull);
    }
    for (std::int64_t p = lane + kHeld * team; p < packs; p += team) {
      store_gradient(to, p, dys.load(p), xs.load(p), weights.load(p), past.load(p), r, pull);
    }
  }
}

// parts (parts, width): a thread sums a pack of columns over the groups of its run.
template <Access kAccess, typename T>
__global__ void __launch_bounds__(kSumThreads, 2) sum_part(float* parts,
                                                           Matrix<T> dy,
                                                           Matrix<T> x,
                                                           const float* rstd,
                                                           Groups groups,
                                                           std::int64_t groups_per_part) {
  __shared__ float runs[kSumThreads * kPack<T>];
  const std::int64_t p = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const PartOfGroups part = part_of(groups, groups_per_part);
  float sums[kPack<T>] = {};
  for (std::int64_t first = part.first; first < part.end; first += kGroupsAtOnce * part.step) {
    Pack<T> dys[kGroupsAtOnce], xs[kGroupsAtOnce];
    float rs[kGroupsAtOnce];
#pragma unroll
    for (int j = 0; j < kGroupsAtOnce; ++j) {
      const std::int64_t i = first + j * part.step;
      const std::int64_t width = i < part.end ? groups.width : 0;
      const std::int64_t group = i < part.end ? i : 0;
      dys[j] = Stretch<kAccess, T>{group_of(dy, groups, group), width}.load(p);
      xs[j] = Stretch<kAccess, T>{group_of(x, groups, group), width}.load(p);
      rs[j] = rstd[group];
    }
#pragma unroll
    for (int j = 0; j < kGroupsAtOnce; ++j) {
#pragma unroll
      for (int c = 0; c < kPack<T>; ++c) sums[c] += dys[j][c] * xs[j][c] * rs[j];
    }
  }
  add_runs(sums, runs);
  if (threadIdx.y > 0) return;
  float* to = parts + blockIdx.y * groups.width;
#pragma unroll
  for (int c = 0; c < kPack<T>; ++c) {
    if (p * kPack<T> + c < groups.width) to[p * kPack<T> + c] = sums[c];
  }
}

// Division of a norm over groups into packs, or into elements.
struct Cut {
  Access access;
  int team;
  std::int64_t packs;  // per thread
};

template <typename T>
Cut cut_of(const Groups& groups, bool whole_packs) {
  const std::int64_t packs = divided_up(groups.width, kPack<T>);
  const int team = team_threads(packs, kWantedPacks);
  return {whole_packs ? Access::Packs : Access::Elements, team, divided_up(packs, team)};
}

// Calls body(access, held) with constants. held: packs of a thread if there is room for them; 1 if
// it goes through elements.
template <typename Body>
void with_cut(const Cut& cut, Body&& body) {
  constexpr std::integral_constant<Access, Access::Packs> kInPacks;
  constexpr std::integral_constant<Access, Access::Elements> kInElements;
  if (cut.access == Access::Elements) {
    body(kInElements, std::integral_constant<int, 1>{});
  } else if (cut.packs <= 1) {
    body(kInPacks, std::integral_constant<int, 1>{});
  } else if (cut.packs <= 2) {
    body(kInPacks, std::integral_constant<int, 2>{});
  } else {
    body(kInPacks, std::integral_constant<int, kMostPacks>{});
  }
}

}  // namespace
}  // namespace rms_norm_kernels

void rms_norm_forward(Stream& stream, Tensor y, Tensor rstd, Tensor x, Tensor w, float epsilon) {
  const Groups groups = groups_of(rstd, w.dim(0));
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), xs = matrix<T>(stream, x);
    T* ws = data<T>(stream, w);
    const bool whole = in_packs(ys, groups.width) && in_packs(xs, groups.width) && starts_pack(ws);
    const rms_norm_kernels::Cut cut = rms_norm_kernels::cut_of<T>(groups, whole);
    rms_norm_kernels::with_cut(cut, [&](auto access, auto held) {
      enqueue(stream,
              "rms_norm_forward",
              WorkClass::Memory,
              teams_grid(groups, cut.team),
              rms_norm_kernels::forward<access(), held(), T>,
              ys,
              data<float>(stream, rstd),
              xs,
              ws,
              groups,
              epsilon,
              cut.team);
    });
  });
}

void rms_norm_dgrad(Stream& stream,
                    Tensor dx,
                    Tensor dy,
                    Tensor x,
                    Tensor w,
                    Tensor rstd,
                    Tensor residual) {
  const Groups groups = groups_of(rstd, w.dim(0));
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx), dys = matrix<T>(stream, dy);
    const Matrix<T> xs = matrix<T>(stream, x);
    const Matrix<T> past = residual.defined() ? matrix<T>(stream, residual) : Matrix<T>{};
    T* ws = data<T>(stream, w);
    const bool whole = in_packs(dxs, groups.width) && in_packs(dys, groups.width) &&
                       in_packs(xs, groups.width) && in_packs(past, groups.width) &&
                       starts_pack(ws);
    const rms_norm_kernels::Cut cut = rms_norm_kernels::cut_of<T>(groups, whole);
    rms_norm_kernels::with_cut(cut, [&](auto access, auto held) {
      enqueue(stream,
              "rms_norm_dgrad",
              WorkClass::Memory,
              teams_grid(groups, cut.team),
              rms_norm_kernels::dgrad<access(), held(), T>,
              dxs,
              dys,
              xs,
              past,
              ws,
              data<float>(stream, rstd),
              groups,
              cut.team);
    });
  });
}

void rms_norm_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Tensor rstd, Write write) {
  const Groups groups = groups_of(rstd, dw.dim(0));
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const ColumnSums sums = column_sums(groups, divided_up(groups.width, kPack<T>));
    float* parts = scratch<float>(stream, sums.parts * groups.width);
    float* dws = data<float>(stream, dw);
    const Matrix<T> dys = matrix<T>(stream, dy), xs = matrix<T>(stream, x);
    const float* rstds = data<float>(stream, rstd);
    const bool whole = in_packs(dys, groups.width) && in_packs(xs, groups.width);
    const auto sum = whole ? rms_norm_kernels::sum_part<Access::Packs, T>
                           : rms_norm_kernels::sum_part<Access::Elements, T>;
    enqueue_all(stream, "rms_norm_wgrad", WorkClass::Memory, [=](cudaStream_t handle) {
      if (sums.parts == 0 && write == Write::Accumulate) return;
      if (sums.parts > 0) {
        sum<<<sums.blocks(), sums.threads(), 0, handle>>>(parts,
                                                          dys,
                                                          xs,
                                                          rstds,
                                                          groups,
                                                          sums.groups_per_part);
      }
      add_parts(handle, dws, parts, sums.parts, groups.width, write);
    });
  });
}

}  // namespace weft::kernels::cuda
