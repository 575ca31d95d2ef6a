// Moving rows: gathered by index, summed by index, copied in blocks.
#include <algorithm>
#include <span>
#include <vector>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/block_sums.h"
#include "weft/kernels/cuda/device/byte_rows.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/packs.h"

namespace weft::kernels::cuda {
namespace rows_kernels {
namespace {

__device__ bool names_row(std::int32_t i, std::int64_t rows) { return i >= 0 && i < rows; }

// -1 names no row. Any other number without a row is a fault.
__device__ void check_index(std::int32_t i, std::int64_t rows, const Faults& faults) {
  if (!names_row(i, rows) && i != -1) faults.raise(FaultCode::RowOutOfRange, i, rows);
}

// Rows that a thread loads before it writes the first: every blockDim.y-th of a block's.
constexpr int kRowsAtOnce = 4;

// Gathers words of all rows in slices, one behind another. blockIdx.y is the slice.
template <typename Word>
__global__ void gather(ByteRows to,
                       ByteRows from,
                       const std::int32_t* source,
                       std::int64_t slice_words,
                       Faults faults) {
  const std::int64_t begin = blockIdx.y * slice_words;
  const std::int64_t end = min(begin + slice_words, to.words<Word>());
  const std::int64_t block_rows = std::int64_t(blockDim.y) * kRowsAtOnce;
  for (std::int64_t first = blockIdx.x * block_rows + threadIdx.y; first < to.rows;
       first += gridDim.x * block_rows) {
    std::int32_t named[kRowsAtOnce];
#pragma unroll
    for (int j = 0; j < kRowsAtOnce; ++j) {
      const std::int64_t r = first + j * blockDim.y;
      named[j] = r < to.rows ? source[r] : -1;
    }
    for (std::int64_t w = begin + threadIdx.x; w < end; w += blockDim.x) {
      Word words[kRowsAtOnce];
#pragma unroll
      for (int j = 0; j < kRowsAtOnce; ++j) {
        words[j] = names_row(named[j], from.rows) ? from.row<Word>(named[j])[w] : Word{};
      }
#pragma unroll
      for (int j = 0; j < kRowsAtOnce; ++j) {
        const std::int64_t r = first + j * blockDim.y;
        if (r < to.rows) __stcs(to.row<Word>(r) + w, words[j]);
      }
    }
    if (blockIdx.y > 0 || threadIdx.x > 0) continue;
    for (int j = 0; j < kRowsAtOnce; ++j) check_index(named[j], from.rows, faults);
  }
}

// Words of a slice, for rows that are copied more than once. The cache keeps the slices of all rows
// until their last copy. Whole lines, and enough of them for a warp.
template <typename Word>
std::int64_t slice_words(const ByteRows& to, const ByteRows& from) {
  constexpr std::int64_t kCachedBytes = 16 << 20, kLeastBytes = 512, kLineBytes = 128;
  std::int64_t bytes = to.bytes;
  while (to.rows > from.rows && bytes > kLeastBytes && from.rows * bytes > kCachedBytes) {
    const std::int64_t lines = divided_up(bytes, kLineBytes);
    bytes = (lines + 1) / 2 * kLineBytes;
  }
  return std::max<std::int64_t>(bytes / std::int64_t(sizeof(Word)), 1);
}

// y[t] = the rows of x that sources[t] names, summed in their order. The residual comes last;
// nullptr: there is none.
template <int N, typename Y, typename X>
struct NamedSums {
  Matrix<Y> y;
  Matrix<X> x;
  Matrix<std::int32_t> sources;
  Matrix<X> residual;

  __device__ std::int64_t packs() const { return y.columns / N; }
  __device__ void add(float (&sum)[N], const Pack<X, N>& pack) const {
#pragma unroll
    for (int i = 0; i < N; ++i) sum[i] += pack[i];
  }
  __device__ Pack<X, N> pack(std::int64_t row, std::int64_t c) const {
    return read_once<N>(x.row(row) + c * N);
  }
  __device__ void write(std::int64_t t, std::int64_t c, float (&sum)[N]) const {
    if (residual.data != nullptr) add(sum, read_once<N>(residual.row(t) + c * N));
    store_pack(y.row(t) + c * N, packed<Y>(sum));
  }
};

// Sums rows shorter than a warp.
template <int N, typename Y, typename X>
__global__ void add_short(NamedSums<N, Y, X> sums, Faults faults) {
  for (std::int64_t t = first_row(); t < sums.y.rows; t += row_step()) {
    for (std::int64_t c = threadIdx.x; c < sums.packs(); c += blockDim.x) {
      float sum[N] = {};
      for (std::int64_t j = 0; j < sums.sources.columns; ++j) {
        const std::int32_t named = sums.sources.row(t)[j];
        if (names_row(named, sums.x.rows)) sums.add(sum, sums.pack(named, c));
        if (c == 0) check_index(named, sums.x.rows, faults);
      }
      sums.write(t, c, sum);
    }
  }
}

// Rows that a warp sums at once, of which few may be named. It loads one row of each before it adds
// the first. A lane reads one name.
constexpr int kSummedAtOnce = 4, kNamesAtOnce = kWarp / kSummedAtOnce;

template <int N, typename Y, typename X>
__global__ void __launch_bounds__(kRowThreads, 3)
    add_named(NamedSums<N, Y, X> sums, Faults faults) {
  const int lane = int(threadIdx.x) % kWarp;
  const auto name = [&](std::int64_t t, std::int64_t j) {
    t += lane / kNamesAtOnce;
    j += lane % kNamesAtOnce;
    return t < sums.y.rows && j < sums.sources.columns ? sums.sources.row(t)[j] : -1;
  };
  std::int64_t t = first_row() * kSummedAtOnce;
  const std::int64_t step = row_step() * kSummedAtOnce;
  std::int32_t next = name(t, 0);
  for (; t < sums.y.rows; t += step) {
    const std::int32_t first = next;
    next = name(t + step, 0);
    for (std::int64_t begin = threadIdx.x - lane; begin < sums.packs(); begin += blockDim.x) {
      const std::int64_t c = begin + lane;
      const bool has = c < sums.packs();
      float sum[kSummedAtOnce][N] = {};
      for (std::int64_t j = 0; j < sums.sources.columns; j += kNamesAtOnce) {
        const std::int32_t named = j == 0 ? first : name(t, j);
        if (begin == 0) check_index(named, sums.x.rows, faults);
        // Has a bit for each name of each row.
        unsigned left = __ballot_sync(kAllLanes, names_row(named, sums.x.rows));
        while (left != 0) {
          Pack<X, N> packs[kSummedAtOnce];
          bool some[kSummedAtOnce];
#pragma unroll
          for (int r = 0; r < kSummedAtOnce; ++r) {
            const unsigned of_row = left & ((1u << kNamesAtOnce) - 1) << (r * kNamesAtOnce);
            some[r] = of_row != 0;
            if (!some[r]) continue;
            left ^= of_row & -of_row;
            const std::int32_t row = __shfl_sync(kAllLanes, named, __ffs(int(of_row)) - 1);
            if (has) packs[r] = sums.pack(row, c);
          }
#pragma unroll
          for (int r = 0; r < kSummedAtOnce; ++r) {
            if (some[r]) sums.add(sum[r], packs[r]);
          }
        }
      }
#pragma unroll
      for (int r = 0; r < kSummedAtOnce; ++r) {
        if (has && t + r < sums.y.rows) sums.write(t + r, c, sum[r]);
      }
    }
  }
}

__global__ void choices(Matrix<float> to,
                        Matrix<float> from,
                        const std::int32_t* source,
                        Matrix<std::int32_t> chosen,
                        Faults faults) {
  for (std::int64_t r = first_row(); r < to.rows; r += row_step()) {
    const std::int32_t i = source[r];
    if (threadIdx.x == 0) check_index(i, from.rows, faults);
    const bool taken = names_row(i, from.rows);
    for (std::int64_t j = threadIdx.x; j < to.columns; j += blockDim.x) {
      const bool own = taken && chosen.row(r)[j] >= 0;
      to.row(r)[j] = own ? from.row(i)[j] : 0.0f;
    }
  }
}

// Blocks of rows of one launch, in the kernel's parameters.
struct Batch {
  static constexpr int kMost = 64;

  RowBlock blocks[kMost];
  std::int64_t begins[kMost];  // rows of the blocks before
  int count = 0;
  std::int64_t rows = 0;  // sum over all blocks

  explicit Batch(std::span<const RowBlock> of) : count(int(of.size())) {
    for (int b = 0; b < count; ++b) {
      blocks[b] = of[std::size_t(b)];
      begins[b] = rows;
      rows += blocks[b].rows;
    }
  }

  // Last block that begins at or before a row, counted over all blocks.
  __device__ int block_of(std::int64_t row) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (begins[middle] <= row) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

template <typename Word>
__global__ void copy_blocks(ByteRows to, ByteRows from, const __grid_constant__ Batch batch) {
  for (std::int64_t r = first_row(); r < batch.rows; r += row_step()) {
    const int b = batch.block_of(r);
    const std::int64_t i = r - batch.begins[b];
    copy_row<Word>(to, batch.blocks[b].to + i, from, batch.blocks[b].from + i);
  }
}

}  // namespace
}  // namespace rows_kernels

void gather_rows(Stream& stream, Tensor y, Tensor x, Tensor index) {
  const ByteRows to = byte_rows(stream, y), from = byte_rows(stream, x);
  const std::int32_t* source = data<std::int32_t>(stream, index);
  const Faults faults(stream);
  with_word(to, from, [&]<typename Word>(As<Word>) {
    const std::int64_t slice = rows_kernels::slice_words<Word>(to, from);
    Grid grid = short_rows_grid(to.rows, slice, rows_kernels::kRowsAtOnce);
    grid.blocks.y = static_cast<unsigned>(divided_up(to.words<Word>(), slice));
    enqueue(stream,
            "gather_rows",
            WorkClass::Memory,
            grid,
            rows_kernels::gather<Word>,
            to,
            from,
            source,
            slice,
            faults);
  });
}

void sum_rows(Stream& stream, Tensor y, Tensor x, Tensor index, Tensor residual) {
  const auto sum_in = [&]<typename Y, typename X>(As<Y>, As<X>) {
    const Matrix<Y> ys = matrix<Y>(stream, y);
    const Matrix<X> xs = matrix<X>(stream, x);
    const Matrix<std::int32_t> sources = matrix<std::int32_t>(stream, index);
    const Matrix<X> added = residual.defined() ? matrix<X>(stream, residual) : Matrix<X>{};
    const Faults faults(stream);
    with_packs<kPack<X>>(
        [&]<int N>(std::integral_constant<int, N>) {
          const rows_kernels::NamedSums<N, Y, X> sums{ys, xs, sources, added};
          const std::int64_t packs = ys.columns / N;
          const bool is_short = packs < kWarp;
          enqueue(stream,
                  "sum_rows",
                  WorkClass::Memory,
                  short_rows_grid(ys.rows, packs, is_short ? 1 : rows_kernels::kSummedAtOnce),
                  is_short ? rows_kernels::add_short<N, Y, X> : rows_kernels::add_named<N, Y, X>,
                  sums,
                  faults);
        },
        ys,
        xs,
        added);
  };
  with_float(x.dtype(), [&]<typename X>(As<X> as) {
    y.dtype() == x.dtype() ? sum_in(as, as) : sum_in(As<float>{}, as);
  });
}

void gather_choices(Stream& stream, Tensor p_Rk, Tensor p_Tk, Tensor token, Tensor choice) {
  enqueue(stream,
          "gather_choices",
          WorkClass::Memory,
          short_rows_grid(p_Rk.dim(0), p_Rk.dim(1)),
          rows_kernels::choices,
          matrix<float>(stream, p_Rk),
          matrix<float>(stream, p_Tk),
          data<std::int32_t>(stream, token),
          matrix<std::int32_t>(stream, choice),
          Faults(stream));
}

void copy_rows(Stream& stream, Tensor y, Tensor x, std::span<const RowBlock> blocks) {
  const ByteRows to = byte_rows(stream, y), from = byte_rows(stream, x);
  std::vector<rows_kernels::Batch> batches;
  for (std::size_t first = 0; first < blocks.size(); first += rows_kernels::Batch::kMost) {
    const std::size_t count =
        std::min<std::size_t>(rows_kernels::Batch::kMost, blocks.size() - first);
    batches.emplace_back(blocks.subspan(first, count));
  }
  with_word(to, from, [&]<typename Word>(As<Word>) {
    enqueue_all(stream, "copy_rows", WorkClass::Memory, [=](cudaStream_t handle) {
      for (const rows_kernels::Batch& batch : batches) {
        if (batch.rows == 0) continue;
        const Grid grid = short_rows_grid(batch.rows, to.words<Word>());
        rows_kernels::copy_blocks<Word><<<grid.blocks, grid.threads, 0, handle>>>(to, from, batch);
      }
    });
  });
}

}  // namespace weft::kernels::cuda
