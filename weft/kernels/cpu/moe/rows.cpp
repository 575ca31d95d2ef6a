// Moves rows: gathers by index, sums by index, copies blocks.
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

// Rows of bytes: a matrix, or a vector as one column.
struct ByteRows {
  std::byte* data;
  std::int64_t rows, bytes, stride;

  std::byte* row(std::int64_t i) const { return data + i * stride; }
};

ByteRows byte_rows(Stream& stream, const Tensor& x) {
  const std::int64_t size = tensor::size_of(x.dtype());
  const std::int64_t columns = x.shape().rank() == 2 ? x.dim(1) : 1;
  return {bytes_of(stream, x), x.dim(0), columns * size, x.row_stride() * size};
}

// True if an index names a row; -1 names none, any other value is a fault.
bool names_row(std::int32_t i, std::int64_t rows, const Faults& faults) {
  if (i >= 0 && i < rows) return true;
  if (i != -1) faults.raise(FaultCode::RowOutOfRange, {i, rows});
  return false;
}

// Rows are short and far apart: hardware prefetching starts when a row is nearly over. Copies
// therefore prefetch pieces of a later row into the second-level cache, between pieces of the
// current one.
constexpr std::int64_t kRowsAhead = 1, kLineBytes = 64;

void ask_for(const void* line) { __builtin_prefetch(line, 0, 2); }

// Size above which the last-level cache loses a row before it is read again. x86 reads a line
// before writing it, except with non-temporal stores; aarch64 detects lines that are written whole.
constexpr std::int64_t kPastCaches = 64 << 20;
#ifdef __SSE2__
constexpr bool kWritesPastCaches = true;

void write_past_caches(std::byte* to, const std::byte* from, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 16) {
    const __m128i word = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), word);
  }
}

// Makes non-temporal stores visible to other threads.
void end_writes_past_caches() { _mm_sfence(); }
#else
constexpr bool kWritesPastCaches = false;

void write_past_caches(std::byte*, const std::byte*, std::int64_t) {}
void end_writes_past_caches() {}
#endif

enum class Writes { Cached, PastCaches };

// Many rows of whole words are faster with non-temporal stores.
Writes writes_of(const ByteRows& to) {
  const bool past = kWritesPastCaches && to.rows * to.bytes >= kPastCaches && to.stride % 16 == 0 &&
                    reinterpret_cast<std::uintptr_t>(to.data) % 16 == 0;
  return past ? Writes::PastCaches : Writes::Cached;
}

// Copies a row and prefetches `later`.
void copy_row(std::byte* to,
              const std::byte* from,
              const std::byte* later,
              std::int64_t bytes,
              Writes writes) {
  constexpr std::int64_t kPiece = 2 * kLineBytes;
  std::int64_t i = 0;
  for (; i + kPiece <= bytes; i += kPiece) {
    for (std::int64_t line = i; line < i + kPiece; line += kLineBytes) ask_for(later + line);
    if (writes == Writes::PastCaches) {
      write_past_caches(to + i, from + i, kPiece);
    } else {
      std::memcpy(to + i, from + i, kPiece);
    }
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

// Rows are summed two at a time, into a sum that stays in the first-level cache. More at once
// exceed the streams that hardware prefetching follows; one at a time reads and writes the sum for
// each row.
constexpr int kRowsAtOnce = 2;

// sum += the N rows, in order, while prefetching N later ones. The first rows begin the sum, the
// last ones write it to y.
template <int N, bool kFirst, bool kLast, typename Y, typename X>
void add_rows(Y* __restrict__ y,
              float* __restrict__ sum,
              const X* const* rows,
              const X* const* later,
              std::int64_t columns) {
  const auto add = [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t c = begin; c < end; ++c) {
      float s = kFirst ? 0.0f : sum[c];
      for (int j = 0; j < N; ++j) s += load(rows[j][c]);
      if constexpr (kLast) {
        store(y[c], s);
      } else {
        sum[c] = s;
      }
    }
  };
  constexpr std::int64_t kLine = kLineBytes / static_cast<std::int64_t>(sizeof(X));
  std::int64_t c = 0;
  for (; c + kLine <= columns; c += kLine) {
    for (int j = 0; j < N; ++j) ask_for(later[j] + c);
    add(c, c + kLine);
  }
  add(c, columns);
}

// y = the sum of the first `count` of `rows`, in order. Rows behind them are prefetched while the
// last are added; `sum` has room for a row.
template <typename Y, typename X>
void sum_of(Y* y,
            std::vector<float>& sum,
            std::span<const X* const> rows,
            std::int64_t count,
            std::int64_t columns) {
  const auto row = [&](std::int64_t i) {
    return rows[static_cast<std::size_t>(std::min(i, std::ssize(rows) - 1))];
  };
  if (count == 0) std::fill_n(y, columns, Y{});
  for (std::int64_t i = 0; i < count; i += kRowsAtOnce) {
    const X* now[kRowsAtOnce];
    const X* later[kRowsAtOnce];
    for (int j = 0; j < kRowsAtOnce; ++j) {
      now[j] = row(i + j);
      later[j] = row(i + kRowsAtOnce + j);
    }
    const bool first = i == 0, last = i + kRowsAtOnce >= count, pair = i + 1 < count;
    const auto add = [&]<int N>(std::integral_constant<int, N>) {
      if (first && last) return add_rows<N, true, true>(y, sum.data(), now, later, columns);
      if (first) return add_rows<N, true, false>(y, sum.data(), now, later, columns);
      if (last) return add_rows<N, false, true>(y, sum.data(), now, later, columns);
      return add_rows<N, false, false>(y, sum.data(), now, later, columns);
    };
    pair ? add(std::integral_constant<int, 2>{}) : add(std::integral_constant<int, 1>{});
  }
}

}  // namespace

void gather_rows(Stream& stream, Tensor y, Tensor x, Tensor index) {
  const ByteRows to = byte_rows(stream, y), from = byte_rows(stream, x);
  const std::int32_t* source = data<std::int32_t>(stream, index);
  const Writes writes = writes_of(to);
  const Faults faults(stream);
  enqueue(stream, "gather_rows", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(to.rows, to.bytes / 4), [&](Range rows) {
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        const std::int32_t later = source[std::min(r + kRowsAhead, to.rows - 1)];
        if (names_row(source[r], from.rows, faults)) {
          const std::int32_t asked = later >= 0 && later < from.rows ? later : source[r];
          copy_row(to.row(r), from.row(source[r]), from.row(asked), to.bytes, writes);
        } else {
          std::fill_n(to.row(r), to.bytes, std::byte{0});
        }
      }
      if (writes == Writes::PastCaches) end_writes_past_caches();
    });
  });
}

void sum_rows(Stream& stream, Tensor y, Tensor x, Tensor index, Tensor residual) {
  const auto sum_in = [&]<typename Y, typename X>(As<Y>, As<X>) {
    const Matrix<Y> ys = matrix<Y>(stream, y);
    const Matrix<X> xs = matrix<X>(stream, x);
    const Matrix<std::int32_t> sources = matrix<std::int32_t>(stream, index);
    const Matrix<X> added = residual.defined() ? matrix<X>(stream, residual) : Matrix<X>{};
    // Cut by rows written: a task of few tokens would end before prefetching pays.
    const Faults faults(stream);
    enqueue(stream, "sum_rows", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(ys.rows, ys.columns), [&](Range rows) {
        std::vector<const X*> named;
        std::vector<float> sum(static_cast<std::size_t>(xs.columns));
        const auto name_rows_of = [&](std::int64_t t) {
          for (std::int64_t j = 0; j < sources.columns; ++j) {
            const std::int32_t i = sources.row(t)[j];
            if (names_row(i, xs.rows, faults)) named.push_back(xs.row(i));
          }
          if (added.data != nullptr) named.push_back(added.row(t));
        };
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          named.clear();
          name_rows_of(t);
          const std::int64_t count = std::ssize(named);
          if (t + 1 < ys.rows) name_rows_of(t + 1);
          sum_of<Y, X>(ys.row(t), sum, named, count, xs.columns);
        }
      });
    });
  };
  with_float(x.dtype(), [&]<typename X>(As<X> as) {
    y.dtype() == x.dtype() ? sum_in(as, as) : sum_in(As<float>{}, as);
  });
}

void gather_choices(Stream& stream, Tensor p_Rk, Tensor p_Tk, Tensor token, Tensor choice) {
  const Matrix<float> to = matrix<float>(stream, p_Rk), from = matrix<float>(stream, p_Tk);
  const Matrix<std::int32_t> chosen = matrix<std::int32_t>(stream, choice);
  const std::int32_t* source = data<std::int32_t>(stream, token);
  const Faults faults(stream);
  enqueue(stream, "gather_choices", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(to.rows, to.columns), [&](Range range) {
      for (std::int64_t r = range.begin; r < range.end; ++r) {
        const bool taken = names_row(source[r], from.rows, faults);
        for (std::int64_t j = 0; j < to.columns; ++j) {
          const bool own = taken && chosen.row(r)[j] >= 0;
          to.row(r)[j] = own ? from.row(source[r])[j] : 0.0f;
        }
      }
    });
  });
}

void copy_rows(Stream& stream, Tensor y, Tensor x, std::span<const RowBlock> blocks) {
  const ByteRows to = byte_rows(stream, y), from = byte_rows(stream, x);
  std::vector<RowBlock> pieces;
  for (const RowBlock& block : blocks) {
    const Cut cut = cut_rows(block.rows, to.bytes / 4);
    for (std::int64_t i = 0; i < cut.count(); ++i) {
      pieces.push_back({block.from + cut[i].begin, block.to + cut[i].begin, cut[i].size()});
    }
  }
  enqueue(stream, "copy_rows", WorkClass::Memory, [=](Workers& workers) {
    workers.parallel(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
      const RowBlock& piece = pieces[static_cast<std::size_t>(i)];
      if (to.stride == to.bytes && from.stride == from.bytes) {
        std::copy_n(from.row(piece.from), piece.rows * to.bytes, to.row(piece.to));
        return;
      }
      for (std::int64_t r = 0; r < piece.rows; ++r) {
        std::copy_n(from.row(piece.from + r), to.bytes, to.row(piece.to + r));
      }
    });
  });
}

}  // namespace weft::kernels::cpu
