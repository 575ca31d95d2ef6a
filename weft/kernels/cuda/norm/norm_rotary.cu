// RMSNorm over heads and their rotation in one: y = turned(x * rstd * w), and back. A thread has
// units of a head. Nothing is rounded between norm and rotation.
#include "weft/kernels/cuda/attention/turns.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/norm/column_sums.h"

namespace weft::kernels::cuda {
namespace norm_rotary_kernels {
namespace {

// Heads of one call: group i of `groups` is a head, which turns by the angles of its row.
struct TurnedHeads {
  Groups groups;
  Matrix<float> table;
  Pairs pairs;

  __host__ __device__ std::int64_t half() const { return groups.width / 2; }

  // A lane without a group loads and stores nothing.
  template <Access kAccess, typename T>
  __device__ TurnedHead<kAccess, T> head(const Matrix<T>& x, std::int64_t i) const {
    const bool is_one = i < groups.count;
    return {group_of(x, groups, is_one ? i : 0), is_one ? half() : 0, pairs};
  }
  __device__ const float* angles(std::int64_t i) const {
    return table.row((i < groups.count ? i : 0) / groups.per_row % table.rows);
  }
};

template <typename T>
__device__ float squares_of(const Unit<T>& x) {
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kPack<T>; ++c) sum += x.first[c] * x.first[c] + x.second[c] * x.second[c];
  return sum;
}

template <typename T>
__device__ float product_of(const Unit<T>& w, const Unit<T>& dy, const Unit<T>& x) {
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kPack<T>; ++c) {
    sum += w.first[c] * dy.first[c] * x.first[c] + w.second[c] * dy.second[c] * x.second[c];
  }
  return sum;
}

template <typename T>
__device__ void scale_unit(Unit<T>& x, const Unit<T>& w, float r) {
#pragma unroll
  for (int c = 0; c < kPack<T>; ++c) {
    x.first[c] = x.first[c] * r * w.first[c];
    x.second[c] = x.second[c] * r * w.second[c];
  }
}

// Turns dy into dx.
template <typename T>
__device__ void norm_back(Unit<T>& dy, const Unit<T>& x, const Unit<T>& w, float r, float pull) {
#pragma unroll
  for (int c = 0; c < kPack<T>; ++c) {
    dy.first[c] = r * (w.first[c] * dy.first[c] - x.first[c] * pull);
    dy.second[c] = r * (w.second[c] * dy.second[c] - x.second[c] * pull);
  }
}

// A thread holds one unit of its head between the two passes. A wider head is read again.
template <Access kAccess, typename T>
__global__ void __launch_bounds__(kTeamsThreads, 3) forward(Matrix<T> y,
                                                            float* rstd,
                                                            Matrix<T> x,
                                                            T* w,
                                                            TurnedHeads heads,
                                                            float epsilon,
                                                            int team) {
  const Groups& groups = heads.groups;
  const int lane = team_lane(team);
  const std::int64_t half = heads.half(), units = divided_up(half, kPack<T>);
  const TurnedHead<kAccess, T> weights{w, half, heads.pairs};
  for (std::int64_t round = first_round(team); round < groups.count; round += round_step(team)) {
    const std::int64_t i = round + team_index(team);
    const auto from = heads.head<kAccess>(x, i), to = heads.head<kAccess>(y, i);
    Unit<T> unit = from.load(lane);
    float squares = squares_of(unit);
    for (std::int64_t u = lane + team; u < units; u += team) squares += squares_of(from.load(u));
    squares = team_sum(squares, team);
    const float r = 1.0f / sqrtf(squares / static_cast<float>(groups.width) + epsilon);
    if (i < groups.count && lane == 0) rstd[i] = r;
    for (std::int64_t u = lane; u < units; u += team) {
      if (u > lane) unit = from.load(u);
      scale_unit(unit, weights.load(u), r);
      turn_unit(unit, load_angles<kAccess, T>(heads.angles(i), half, u), heads.pairs, kForth);
      to.store(u, unit);
    }
  }
}

// With dn, dy turned back: dx = rstd * (w dn - x rstd^2 mean(w dn x)).
template <Access kAccess, typename T>
__global__ void __launch_bounds__(kTeamsThreads, 2) dgrad(Matrix<T> dx,
                                                          Matrix<T> dy,
                                                          Matrix<T> x,
                                                          T* w,
                                                          const float* rstd,
                                                          TurnedHeads heads,
                                                          int team) {
  const Groups& groups = heads.groups;
  const int lane = team_lane(team);
  const std::int64_t half = heads.half(), units = divided_up(half, kPack<T>);
  const TurnedHead<kAccess, T> weights{w, half, heads.pairs};
  for (std::int64_t round = first_round(team); round < groups.count; round += round_step(team)) {
    const std::int64_t i = round + team_index(team);
    const auto dys = heads.head<kAccess>(dy, i), xs = heads.head<kAccess>(x, i);
    const auto to = heads.head<kAccess>(dx, i);
    const float* angles = heads.angles(i);
    const auto turned_back = [&](std::int64_t u) {
      Unit<T> unit = dys.load(u);
      turn_unit(unit, load_angles<kAccess, T>(angles, half, u), heads.pairs, kBack);
      return unit;
    };
    const float r = rstd[i < groups.count ? i : 0];
    Unit<T> dn{}, own_x{};
    float dot = 0;
    if (lane < units) {
      dn = turned_back(lane);
      own_x = xs.load(lane);
      dot = product_of(weights.load(lane), dn, own_x);
    }
    for (std::int64_t u = lane + team; u < units; u += team) {
      dot += product_of(weights.load(u), turned_back(u), xs.load(u));
    }
    dot = team_sum(dot, team);
    const float pull = dot / static_cast<float>(groups.width) * r * r;
    for (std::int64_t u = lane; u < units; u += team) {
      if (u > lane) {
        dn = turned_back(u);
        own_x = xs.load(u);
      }
      norm_back(dn, own_x, weights.load(u), r, pull);
      to.store(u, dn);
    }
  }
}

// parts (parts, width): a thread sums the columns of a unit over the heads of its run.
template <Access kAccess, typename T>
__global__ void __launch_bounds__(kSumThreads, 2) sum_part(float* parts,
                                                           Matrix<T> dy,
                                                           Matrix<T> x,
                                                           const float* rstd,
                                                           TurnedHeads heads,
                                                           std::int64_t heads_per_part) {
  __shared__ float runs[kSumThreads * 2 * kPack<T>];
  const std::int64_t u = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t half = heads.half(), width = heads.groups.width;
  const PartOfGroups part = part_of(heads.groups, heads_per_part);
  float sums[2 * kPack<T>] = {};
  if (u * kPack<T> < half) {
#pragma unroll 2
    for (std::int64_t i = part.first; i < part.end; i += part.step) {
      Unit<T> dn = heads.head<kAccess>(dy, i).load(u);
      const Unit<T> xs = heads.head<kAccess>(x, i).load(u);
      turn_unit(dn, load_angles<kAccess, T>(heads.angles(i), half, u), heads.pairs, kBack);
      const float r = rstd[i];
#pragma unroll
      for (int c = 0; c < kPack<T>; ++c) {
        sums[c] += dn.first[c] * xs.first[c] * r;
        sums[kPack<T> + c] += dn.second[c] * xs.second[c] * r;
      }
    }
  }
  add_runs(sums, runs);
  if (threadIdx.y > 0) return;
  const TurnedHead<Access::Elements, T> columns{nullptr, half, heads.pairs};
  float* to = parts + blockIdx.y * width;
#pragma unroll
  for (int c = 0; c < 2 * kPack<T>; ++c) {
    const std::int64_t column = columns.column(u, c);
    if (column >= 0) to[column] = sums[c];
  }
}

template <typename T>
struct Call {
  TurnedHeads heads;
  std::int64_t units;
  bool whole;  // true: in units

  Call(Stream& stream,
       const Tensor& rstd,
       const Tensor& table,
       Pairs pairs,
       std::initializer_list<Matrix<T>> matrices)
      : heads{groups_of(rstd, table.dim(1)), matrix<float>(stream, table), pairs},
        units(divided_up(heads.half(), kPack<T>)),
        whole(starts_pack(heads.table.data)) {
    for (const Matrix<T>& x : matrices) whole = whole && in_units(x, heads.half(), 0);
  }

  // A head has at most one warp.
  int team() const { return team_threads(std::min<std::int64_t>(units, kWarp), 1); }
};

}  // namespace
}  // namespace norm_rotary_kernels

void norm_rotary_forward(Stream& stream,
                         Tensor y,
                         Tensor rstd,
                         Tensor x,
                         Tensor w,
                         Tensor table,
                         float epsilon,
                         Rotary::Pairs pairs) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> ys = matrix<T>(stream, y), xs = matrix<T>(stream, x);
    T* ws = data<T>(stream, w);
    const norm_rotary_kernels::Call<T> call(stream, rstd, table, pairs, {ys, xs});
    const int team = call.team();
    enqueue(stream,
            "norm_rotary_forward",
            WorkClass::Memory,
            teams_grid(call.heads.groups, team),
            call.whole && starts_pack(ws) ? norm_rotary_kernels::forward<Access::Packs, T>
                                          : norm_rotary_kernels::forward<Access::Elements, T>,
            ys,
            data<float>(stream, rstd),
            xs,
            ws,
            call.heads,
            epsilon,
            team);
  });
}

void norm_rotary_dgrad(Stream& stream,
                       Tensor dx,
                       Tensor dy,
                       Tensor x,
                       Tensor w,
                       Tensor rstd,
                       Tensor table,
                       Rotary::Pairs pairs) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx), dys = matrix<T>(stream, dy);
    const Matrix<T> xs = matrix<T>(stream, x);
    T* ws = data<T>(stream, w);
    const norm_rotary_kernels::Call<T> call(stream, rstd, table, pairs, {dxs, dys, xs});
    const int team = call.team();
    enqueue(stream,
            "norm_rotary_dgrad",
            WorkClass::Memory,
            teams_grid(call.heads.groups, team),
            call.whole && starts_pack(ws) ? norm_rotary_kernels::dgrad<Access::Packs, T>
                                          : norm_rotary_kernels::dgrad<Access::Elements, T>,
            dxs,
            dys,
            xs,
            ws,
            data<float>(stream, rstd),
            call.heads,
            team);
  });
}

void norm_rotary_wgrad(Stream& stream,
                       Tensor dw,
                       Tensor dy,
                       Tensor x,
                       Tensor rstd,
                       Tensor table,
                       Rotary::Pairs pairs,
                       Write write) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dys = matrix<T>(stream, dy), xs = matrix<T>(stream, x);
    const norm_rotary_kernels::Call<T> call(stream, rstd, table, pairs, {dys, xs});
    const norm_rotary_kernels::TurnedHeads heads = call.heads;
    const std::int64_t width = heads.groups.width;
    const ColumnSums sums = column_sums(heads.groups, call.units);
    float* parts = scratch<float>(stream, sums.parts * width);
    float* dws = data<float>(stream, dw);
    const float* rstds = data<float>(stream, rstd);
    const auto sum = call.whole ? norm_rotary_kernels::sum_part<Access::Packs, T>
                                : norm_rotary_kernels::sum_part<Access::Elements, T>;
    enqueue_all(stream, "norm_rotary_wgrad", WorkClass::Memory, [=](cudaStream_t handle) {
      if (sums.parts == 0 && write == Write::Accumulate) return;
      if (sums.parts > 0) {
        sum<<<sums.blocks(), sums.threads(), 0, handle>>>(parts,
                                                          dys,
                                                          xs,
                                                          rstds,
                                                          heads,
                                                          sums.groups_per_part);
      }
      add_parts(handle, dws, parts, sums.parts, width, write);
    });
  });
}

}  // namespace weft::kernels::cuda
