// Fused RMSNorm over heads and rotation: y = turned(x * rstd * w), and its gradients. Each pair of
// elements passes norm and rotation without rounding between.
#include <algorithm>

#include "weft/kernels/cpu/norm_rows.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

using Pairs = Rotary::Pairs;

// Index of pair i's first element in a head.
template <Pairs kPairs>
std::int64_t first_of(std::int64_t i) {
  return kPairs == Pairs::Halves ? i : 2 * i;
}
template <Pairs kPairs>
std::int64_t second_of(std::int64_t i, std::int64_t half) {
  return kPairs == Pairs::Halves ? i + half : 2 * i + 1;
}

struct Pair {
  float first, second;
};

// Gradient of a pair before the rotation.
inline Pair turned_back(float first, float second, float cosine, float sine) {
  return {first * cosine + second * sine, second * cosine - first * sine};
}

template <Pairs kPairs, typename T>
void forward_head(T* y,
                  const T* x,
                  const T* w,
                  const float* cosines,
                  std::int64_t half,
                  float rstd) {
  const float* sines = cosines + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t a = first_of<kPairs>(i), b = second_of<kPairs>(i, half);
    const float first = load(x[a]) * rstd * load(w[a]), second = load(x[b]) * rstd * load(w[b]);
    store(y[a], first * cosines[i] - second * sines[i]);
    store(y[b], second * cosines[i] + first * sines[i]);
  }
}

// dx = rstd * (w dn - x rstd^2 mean(w dn x)); dn is dy turned back.
template <Pairs kPairs, typename T>
void dgrad_head(T* dx,
                const T* dy,
                const T* x,
                const T* w,
                const float* cosines,
                std::int64_t half,
                float rstd) {
  const float* sines = cosines + half;
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t a = first_of<kPairs>(i), b = second_of<kPairs>(i, half);
    const Pair dn = turned_back(load(dy[a]), load(dy[b]), cosines[i], sines[i]);
    dot += load(w[a]) * dn.first * load(x[a]) + load(w[b]) * dn.second * load(x[b]);
  }
  const float pull = dot / static_cast<float>(2 * half) * rstd * rstd;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t a = first_of<kPairs>(i), b = second_of<kPairs>(i, half);
    const Pair dn = turned_back(load(dy[a]), load(dy[b]), cosines[i], sines[i]);
    store(dx[a], rstd * (load(w[a]) * dn.first - load(x[a]) * pull));
    store(dx[b], rstd * (load(w[b]) * dn.second - load(x[b]) * pull));
  }
}

template <Pairs kPairs, typename T>
void wgrad_head(float* dw,
                const T* dy,
                const T* x,
                const float* cosines,
                std::int64_t half,
                float rstd) {
  const float* sines = cosines + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t a = first_of<kPairs>(i), b = second_of<kPairs>(i, half);
    const Pair dn = turned_back(load(dy[a]), load(dy[b]), cosines[i], sines[i]);
    dw[a] += dn.first * load(x[a]) * rstd;
    dw[b] += dn.second * load(x[b]) * rstd;
  }
}

// Calls body with the pairs as a compile-time constant.
template <typename Body>
void with_pairs(Pairs pairs, const Body& body) {
  if (pairs == Pairs::Halves) {
    body(std::integral_constant<Pairs, Pairs::Halves>{});
  } else {
    body(std::integral_constant<Pairs, Pairs::Neighbours>{});
  }
}

// Calls body(row, column, reciprocal, angles) for every head of the rows.
template <typename Body>
void each_head(Range rows, const Matrix<float>& rstd, const Matrix<float>& table, Body&& body) {
  for (std::int64_t t = rows.begin; t < rows.end; ++t) {
    for (std::int64_t g = 0; g < rstd.columns; ++g) {
      body(t, g * table.columns, rstd.row(t)[g], table.row(t % table.rows));
    }
  }
}

}  // namespace

void norm_rotary_forward(Stream& stream,
                         Tensor y,
                         Tensor rstd,
                         Tensor x,
                         Tensor w,
                         Tensor table,
                         float epsilon,
                         Rotary::Pairs pairs) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), ys = matrix<T>(stream, y);
    const Matrix<float> rstds = matrix<float>(stream, rstd), angles = matrix<float>(stream, table);
    const T* ws = data<T>(stream, w);
    enqueue(stream, "norm_rotary_forward", WorkClass::Memory, [=](Workers& workers) {
      with_pairs(pairs, [&](auto of) {
        parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
          const std::int64_t n = angles.columns;
          each_head(rows, rstds, angles, [&](std::int64_t t, std::int64_t at, float& r, auto* c) {
            r = reciprocal_rms(xs.row(t) + at, n, epsilon);
            forward_head<of()>(ys.row(t) + at, xs.row(t) + at, ws, c, n / 2, r);
          });
        });
      });
    });
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
    const Matrix<T> xs = matrix<T>(stream, x), dys = matrix<T>(stream, dy);
    const Matrix<T> dxs = matrix<T>(stream, dx);
    const Matrix<float> rstds = matrix<float>(stream, rstd), angles = matrix<float>(stream, table);
    const T* ws = data<T>(stream, w);
    enqueue(stream, "norm_rotary_dgrad", WorkClass::Memory, [=](Workers& workers) {
      with_pairs(pairs, [&](auto of) {
        parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
          const std::int64_t half = angles.columns / 2;
          each_head(rows, rstds, angles, [&](std::int64_t t, std::int64_t at, float r, auto* c) {
            const T *from = dys.row(t) + at, *own = xs.row(t) + at;
            dgrad_head<of()>(dxs.row(t) + at, from, own, ws, c, half, r);
          });
        });
      });
    });
  });
}

// Each range of rows is summed on its own; the ranges are added in order.
void norm_rotary_wgrad(Stream& stream,
                       Tensor dw,
                       Tensor dy,
                       Tensor x,
                       Tensor rstd,
                       Tensor table,
                       Rotary::Pairs pairs,
                       Write write) {
  const std::int64_t n = dw.dim(0);
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> xs = matrix<T>(stream, x), dys = matrix<T>(stream, dy);
    const Matrix<float> rstds = matrix<float>(stream, rstd), angles = matrix<float>(stream, table);
    float* dws = data<float>(stream, dw);
    const Cut cut = partial_sums(xs.rows);
    enqueue(stream, "norm_rotary_wgrad", WorkClass::Memory, [=](Workers& workers) {
      std::vector<float> parts(static_cast<std::size_t>(cut.count() * n));
      with_pairs(pairs, [&](auto of) {
        workers.parallel(cut.count(), [&](std::int64_t i) {
          float* part = parts.data() + i * n;
          each_head(cut[i], rstds, angles, [&](std::int64_t t, std::int64_t at, float r, auto* c) {
            wgrad_head<of()>(part, dys.row(t) + at, xs.row(t) + at, c, n / 2, r);
          });
        });
      });
      if (write == Write::Assign) std::fill_n(dws, n, 0.0f);
      for (std::int64_t i = 0; i < cut.count(); ++i) {
        for (std::int64_t c = 0; c < n; ++c) dws[c] += parts[static_cast<std::size_t>(i * n + c)];
      }
    });
  });
}

}  // namespace weft::kernels::cpu
