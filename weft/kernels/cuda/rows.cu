// Moving rows: gathered by index, summed by index, copied in blocks.
#include <algorithm>
#include <span>
#include <vector>

#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/byte_rows.h"
#include "weft/kernels/cuda/operations.h"

namespace weft::kernels::cuda {
namespace {

__device__ bool names_row(std::int32_t i, std::int64_t rows) { return i >= 0 && i < rows; }

// -1 names no row; anything else that names none is a fault.
__device__ void check_index(std::int32_t i, std::int64_t rows, const Faults& faults) {
  if (!names_row(i, rows) && i != -1) faults.raise(FaultCode::RowOutOfRange, i, rows);
}

template <typename Word>
__global__ void gather(ByteRows to, ByteRows from, const std::int32_t* source, Faults faults) {
  for (std::int64_t r = first_row(); r < to.rows; r += row_step()) {
    const std::int32_t i = source[r];
    if (threadIdx.x == 0) check_index(i, from.rows, faults);
    if (names_row(i, from.rows)) {
      copy_row<Word>(to, r, from, i);
    } else {
      clear_row<Word>(to, r);
    }
  }
}

template <typename Y, typename X>
__global__ void add_named(Matrix<Y> y, Matrix<X> x, Matrix<std::int32_t> sources, Faults faults) {
  for (std::int64_t t = first_row(); t < y.rows; t += row_step()) {
    const std::int32_t* source = sources.row(t);
    for (std::int64_t j = 0; j < sources.columns && threadIdx.x == 0; ++j) {
      check_index(source[j], x.rows, faults);
    }
    for (std::int64_t c = threadIdx.x; c < y.columns; c += blockDim.x) {
      float s = 0;
      for (std::int64_t j = 0; j < sources.columns; ++j) {
        const std::int32_t i = source[j];
        if (names_row(i, x.rows)) s += load(x.row(i)[c]);
      }
      store(y.row(t)[c], s);
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

// Blocks of rows as one launch takes them: they travel in the kernel's parameters.
struct Batch {
  static constexpr int kMost = 64;

  RowBlock blocks[kMost];
  std::int64_t begins[kMost];  // rows in the blocks before
  int count = 0;
  std::int64_t rows = 0;  // in all

  explicit Batch(std::span<const RowBlock> of) : count(int(of.size())) {
    for (int b = 0; b < count; ++b) {
      blocks[b] = of[std::size_t(b)];
      begins[b] = rows;
      rows += blocks[b].rows;
    }
  }

  // The last block that begins at or before a row of them all.
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

void gather_rows(Stream& stream, Tensor y, Tensor x, Tensor index) {
  const ByteRows to = byte_rows(stream, y), from = byte_rows(stream, x);
  const std::int32_t* source = data<std::int32_t>(stream, index);
  const Faults faults(stream);
  with_word(to, from, [&]<typename Word>(As<Word>) {
    const Grid grid = short_rows_grid(to.rows, to.bytes / std::int64_t(sizeof(Word)));
    enqueue(stream, "gather_rows", WorkClass::Memory, grid, gather<Word>, to, from, source, faults);
  });
}

void sum_rows(Stream& stream, Tensor y, Tensor x, Tensor index) {
  const auto sum_in = [&]<typename Y, typename X>(As<Y>, As<X>) {
    const Matrix<std::int32_t> sources = matrix<std::int32_t>(stream, index);
    enqueue(stream,
            "sum_rows",
            WorkClass::Memory,
            short_rows_grid(y.dim(0), y.dim(1)),
            add_named<Y, X>,
            matrix<Y>(stream, y),
            matrix<X>(stream, x),
            sources,
            Faults(stream));
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
          choices,
          matrix<float>(stream, p_Rk),
          matrix<float>(stream, p_Tk),
          data<std::int32_t>(stream, token),
          matrix<std::int32_t>(stream, choice),
          Faults(stream));
}

void copy_rows(Stream& stream, Tensor y, Tensor x, std::span<const RowBlock> blocks) {
  const ByteRows to = byte_rows(stream, y), from = byte_rows(stream, x);
  std::vector<Batch> batches;
  for (std::size_t first = 0; first < blocks.size(); first += Batch::kMost) {
    const std::size_t count = std::min<std::size_t>(Batch::kMost, blocks.size() - first);
    batches.emplace_back(blocks.subspan(first, count));
  }
  with_word(to, from, [&]<typename Word>(As<Word>) {
    enqueue_all(stream, "copy_rows", WorkClass::Memory, [=](cudaStream_t handle) {
      for (const Batch& batch : batches) {
        if (batch.rows == 0) continue;
        const Grid grid = short_rows_grid(batch.rows, to.bytes / std::int64_t(sizeof(Word)));
        copy_blocks<Word><<<grid.blocks, grid.threads, 0, handle>>>(to, from, batch);
      }
    });
  });
}

}  // namespace weft::kernels::cuda
