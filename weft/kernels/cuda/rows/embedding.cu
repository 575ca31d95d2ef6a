// Rows of a table by token, and their gradient.
#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/byte_rows.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/tensor/cuda/call.h"

namespace weft::kernels::cuda {
namespace embedding_kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kPiece = 1 << 20;  // positions per sort
constexpr unsigned long long kNone = ~0ull;

// Ids of this rank's rows, among all.
struct Ids {
  std::int64_t rows, before, all;

  Ids(std::int64_t rows_of_table, const OtherIds& others)
      : rows(rows_of_table),
        before(others.before),
        all(others.before + rows_of_table + others.behind) {}

  __device__ bool has(std::int64_t own) const { return own >= 0 && own < rows; }
};

template <typename Word>
__device__ void clear_row(const ByteRows& x, std::int64_t row) {
  Word* to = x.row<Word>(row);
  for (std::int64_t w = threadIdx.x; w < x.words<Word>(); w += blockDim.x) to[w] = Word{};
}

template <typename Word>
__global__ void look_up(ByteRows x,
                        ByteRows table,
                        const std::int32_t* ids,
                        Ids of,
                        Faults faults) {
  for (std::int64_t t = first_row(); t < x.rows; t += row_step()) {
    const std::int32_t id = ids[t];
    const std::int64_t own = id - of.before;
    if (of.has(own)) {
      copy_row<Word>(x, t, table, own);
    } else if (id >= 0 && id < of.all) {
      clear_row<Word>(x, t);
    } else if (threadIdx.x == 0) {
      faults.raise(FaultCode::TokenOutOfRange, id, of.all);
    }
  }
}

// Positions of a piece of the tokens, to be sorted by row. Skipped positions have the row
// `ids.rows`, behind all others.
struct Piece {
  std::int64_t begin, count;
  Ids ids;
};

__global__ void write_keys(Piece piece,
                           const std::int32_t* ids,
                           std::uint32_t* keys,
                           std::int32_t* positions,
                           unsigned long long* first_wrong) {
  for (std::int64_t i = first_index(); i < piece.count; i += index_step()) {
    const std::int32_t id = ids[piece.begin + i];
    if (id >= piece.ids.all) {
      atomicMin(first_wrong, static_cast<unsigned long long>(piece.begin + i));
    }
    const std::int64_t own = id - piece.ids.before;
    const bool skipped = id < 0 || !piece.ids.has(own);
    keys[i] = static_cast<std::uint32_t>(skipped ? piece.ids.rows : own);
    positions[i] = std::int32_t(i);
  }
}

// End of the run of equal keys that begins at `begin`.
__device__ std::int64_t end_of_run(const std::uint32_t* keys,
                                   std::int64_t begin,
                                   std::int64_t count) {
  std::int64_t low = begin + 1, high = count;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (keys[middle] == keys[begin]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// sum + the rows of the positions, in their order. Several loads are in flight before the first is
// added.
template <typename T>
__device__ float add_rows(float sum,
                          const Matrix<T>& rows,
                          const std::int32_t* positions,
                          std::int64_t count,
                          std::int64_t column) {
  constexpr int kAtOnce = 8;
  std::int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    float x[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) x[j] = load(rows.row(positions[i + j])[column]);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) sum += x[j];
  }
  for (; i < count; ++i) sum += load(rows.row(positions[i])[column]);
  return sum;
}

void clear(cudaStream_t handle, const Matrix<float>& x) {
  if (x.rows == 0 || x.columns == 0) return;
  const auto rows = static_cast<std::size_t>(x.rows);
  const std::size_t width = static_cast<std::size_t>(x.columns) * sizeof(float);
  const std::size_t pitch = static_cast<std::size_t>(x.stride) * sizeof(float);
  tensor::cuda::check("cudaMemsetAsync",
                      pitch == width ? cudaMemsetAsync(x.data, 0, rows * width, handle)
                                     : cudaMemset2DAsync(x.data, pitch, 0, width, rows, handle));
}

// Sums the runs of equal tokens. A block takes some columns of the runs that begin in its range.
// Rows of a token are summed in the order of its positions. `dx` begins with the piece.
template <typename T>
__global__ void add_runs(Matrix<float> dtable,
                         Matrix<T> dx,
                         Piece piece,
                         const std::uint32_t* keys,
                         const std::int32_t* positions) {
  const std::int64_t column = std::int64_t(blockIdx.y) * blockDim.x + threadIdx.x;
  if (column >= dtable.columns) return;
  for (std::int64_t i = blockIdx.x; i < piece.count; i += gridDim.x) {
    const bool begins = i == 0 || keys[i] != keys[i - 1];
    if (!begins || keys[i] == piece.ids.rows) continue;
    float& sum = dtable.row(keys[i])[column];
    const std::int64_t count = end_of_run(keys, i, piece.count) - i;
    sum = add_rows(sum, dx, positions + i, count, column);
  }
}

__global__ void tell_first_wrong(const unsigned long long* first_wrong,
                                 const std::int32_t* ids,
                                 std::int64_t vocabulary,
                                 Faults faults) {
  if (*first_wrong == kNone) return;
  faults.raise(FaultCode::TokenOutOfRange, ids[*first_wrong], vocabulary);
}

// Scratch memory of the stream: the first wrong position, two buffers of keys and of positions, and
// the rest for the sort itself.
struct SortRoom {
  unsigned long long* first_wrong;
  cub::DoubleBuffer<std::uint32_t> keys;
  cub::DoubleBuffer<std::int32_t> positions;
  std::byte* rest;
  std::size_t rest_bytes;
};

SortRoom sort_room(Stream& stream, std::int64_t count) {
  constexpr std::int64_t kAlignment = 256;
  const std::int64_t bytes = (count * 4 + kAlignment - 1) / kAlignment * kAlignment;
  const std::int64_t used = kAlignment + 4 * bytes;
  auto* at = scratch<std::byte>(stream, tensor::cuda::kWorkspaceBytes);
  const auto buffer = [&]<typename T>(As<T>, std::int64_t i) {
    return reinterpret_cast<T*>(at + kAlignment + i * bytes);
  };
  return {reinterpret_cast<unsigned long long*>(at),
          {buffer(As<std::uint32_t>{}, 0), buffer(As<std::uint32_t>{}, 1)},
          {buffer(As<std::int32_t>{}, 2), buffer(As<std::int32_t>{}, 3)},
          at + used,
          static_cast<std::size_t>(tensor::cuda::kWorkspaceBytes - used)};
}

// Sorts by id, stable in position.
void launch_sort(cudaStream_t handle, SortRoom& room, const Piece& piece) {
  const int bits = int(std::bit_width(static_cast<std::uint64_t>(piece.ids.rows)));
  const auto sort = [&](void* memory, std::size_t& bytes) {
    const cudaError_t error = cub::DeviceRadixSort::SortPairs(memory,
                                                              bytes,
                                                              room.keys,
                                                              room.positions,
                                                              int(piece.count),
                                                              0,
                                                              bits,
                                                              handle);
    tensor::cuda::check("cub::DeviceRadixSort::SortPairs", error);
  };
  std::size_t wanted = 0;
  sort(nullptr, wanted);
  CHECK(wanted <= room.rest_bytes, "a sort of {} ids in {} bytes", piece.count, wanted);
  sort(room.rest, wanted);
}

}  // namespace
}  // namespace embedding_kernels

void embedding_forward(Stream& stream, Tensor x, Tensor table, Tensor ids, const OtherIds& others) {
  const ByteRows to = byte_rows(stream, x), from = byte_rows(stream, table);
  const std::int32_t* tokens = data<std::int32_t>(stream, ids);
  const Faults faults(stream);
  with_word(to, from, [&]<typename Word>(As<Word>) {
    const Grid grid = short_rows_grid(to.rows, to.bytes / std::int64_t(sizeof(Word)));
    enqueue(stream,
            "embedding_forward",
            WorkClass::Memory,
            grid,
            embedding_kernels::look_up<Word>,
            to,
            from,
            tokens,
            embedding_kernels::Ids(from.rows, others),
            faults);
  });
}

void embedding_wgrad(Stream& stream,
                     Tensor dtable,
                     Tensor dx,
                     Tensor ids,
                     Write write,
                     const OtherIds& others) {
  with_float(dx.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> dxs = matrix<T>(stream, dx);
    const Matrix<float> sums = matrix<float>(stream, dtable);
    const std::int32_t* tokens = data<std::int32_t>(stream, ids);
    const embedding_kernels::Ids rows_of(sums.rows, others);
    const embedding_kernels::SortRoom given =
        embedding_kernels::sort_room(stream, std::min(dxs.rows, embedding_kernels::kPiece));
    const Faults faults(stream);
    enqueue_all(stream, "embedding_wgrad", WorkClass::Memory, [=](cudaStream_t handle) {
      if (write == Write::Assign) embedding_kernels::clear(handle, sums);
      if (dxs.rows == 0 || dxs.columns == 0) return;
      embedding_kernels::SortRoom room = given;
      tensor::cuda::check(
          "cudaMemsetAsync",
          cudaMemsetAsync(room.first_wrong, 0xff, sizeof embedding_kernels::kNone, handle));
      for (std::int64_t begin = 0; begin < dxs.rows; begin += embedding_kernels::kPiece) {
        const embedding_kernels::Piece piece{begin,
                                             std::min(embedding_kernels::kPiece, dxs.rows - begin),
                                             rows_of};
        embedding_kernels::write_keys<<<blocks_for(piece.count, embedding_kernels::kThreads),
                                        embedding_kernels::kThreads,
                                        0,
                                        handle>>>(piece,
                                                  tokens,
                                                  room.keys.Current(),
                                                  room.positions.Current(),
                                                  room.first_wrong);
        embedding_kernels::launch_sort(handle, room, piece);
        const Matrix<T> of_piece{dxs.row(begin), piece.count, dxs.columns, dxs.stride};
        const auto columns = static_cast<unsigned>((dxs.columns + embedding_kernels::kThreads - 1) /
                                                   embedding_kernels::kThreads);
        const dim3 blocks(blocks_for(piece.count, 1), columns);
        embedding_kernels::add_runs<T>
            <<<blocks, embedding_kernels::kThreads, 0, handle>>>(sums,
                                                                 of_piece,
                                                                 piece,
                                                                 room.keys.Current(),
                                                                 room.positions.Current());
      }
      embedding_kernels::tell_first_wrong<<<1, 1, 0, handle>>>(room.first_wrong,
                                                               tokens,
                                                               rows_of.all,
                                                               faults);
    });
  });
}

}  // namespace weft::kernels::cuda
