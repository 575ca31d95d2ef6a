// Two cases. If a sums over its columns, its parts lie side by side, and the sum is three times
// longer; b lies there three times, one below the other or side by side. If a sums over its many
// rows, the parts lie side by side too, and the three parts of the result are added up. In both
// cases rows of a are taken in pieces for which there is room.
#include <algorithm>
#include <vector>

#include "weft/kernels/cuda/gemm/blas.h"
#include "weft/kernels/cuda/gemm/split_product.h"

namespace weft::kernels::cuda {
namespace split_product_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kParts = 3;
constexpr int kEight = 8;  // elements per write of 16 bytes
// Multiplications below which our own kernel is as fast.
constexpr std::int64_t kLeast = std::int64_t(1) << 22;
constexpr std::int64_t kLibraryBytes = 4 << 20;  // library's part of the scratch memory

std::int64_t padded(std::int64_t n) { return (n + kEight - 1) / kEight * kEight; }

// Three bf16 parts of a matrix, each padded with zeros to (rows, columns), multiples of eight. Part
// p of element (r, c) is to[p * part + r * stride + c].
struct Parts {
  BFloat16* to = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0, part = 0;

  std::int64_t elements() const { return kParts * rows * columns; }
};

template <typename T>
Parts side_by_side(const Matrix<T>& x) {
  const std::int64_t width = padded(x.columns);
  return {nullptr, padded(x.rows), width, kParts * width, width};
}

template <typename T>
Parts one_below_the_other(const Matrix<T>& x) {
  const std::int64_t height = padded(x.rows), width = padded(x.columns);
  return {nullptr, height, width, width, height * width};
}

struct ThreeParts {
  BFloat16 part[kParts];
};

// Bits of x that a bf16 number has: cut off, so that no finite number becomes infinite.
__device__ BFloat16 first_bits(float x) {
  return __ushort_as_bfloat16(static_cast<unsigned short>(__float_as_uint(x) >> 16));
}

// The differences are exact. An infinite number leaves NaN in the other parts.
__device__ ThreeParts parts_of(float x) {
  const BFloat16 high = first_bits(x);
  const float rest = x - load(high);
  const BFloat16 middle = first_bits(rest);
  return {{high, middle, first_bits(rest - load(middle))}};
}

__device__ ThreeParts parts_of(BFloat16 x) { return {{x, x, x}}; }

union Eight {
  BFloat16 x[kEight];
  uint4 bits;
  __device__ Eight() : bits{} {}
};

// A thread makes eight neighbours of each part.
template <typename T>
__global__ void __launch_bounds__(kThreads) make_parts(Parts parts, Matrix<const T> from) {
  const std::int64_t eights = parts.columns / kEight;
  for (std::int64_t at = first_index(); at < parts.rows * eights; at += index_step()) {
    const std::int64_t r = at / eights, c = at % eights * kEight;
    Eight eight[kParts];
    if (r < from.rows) {
#pragma unroll
      for (int j = 0; j < kEight; ++j) {
        if (c + j >= from.columns) continue;
        const ThreeParts three = parts_of(from.row(r)[c + j]);
#pragma unroll
        for (int p = 0; p < kParts; ++p) eight[p].x[j] = three.part[p];
      }
    }
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      BFloat16* to = parts.to + p * parts.part + r * parts.stride + c;
      *reinterpret_cast<uint4*>(to) = eight[p].bits;
    }
  }
}

template <typename T>
void launch_make_parts(cudaStream_t stream, const Parts& parts, const Matrix<const T>& from) {
  const unsigned blocks = blocks_for(parts.rows * parts.columns / kEight, kThreads);
  make_parts<T><<<blocks, kThreads, 0, stream>>>(parts, from);
}

// c = or += the sum of three parts of a result. They lie one below the other, the smallest first.
__global__ void __launch_bounds__(kThreads)
    add_parts(Matrix<float> c, const float* parts, std::int64_t part, Write write) {
  for (std::int64_t at = first_index(); at < c.rows * c.columns; at += index_step()) {
    const std::int64_t i = at / c.columns, j = at % c.columns;
    const float sum = (parts[2 * part + at] + parts[part + at]) + parts[at];
    float& to = c.row(i)[j];
    to = write == Write::Accumulate ? to + sum : sum;
  }
}

template <typename T>
Matrix<const T> rows_of(const Factor& x,
                        std::int64_t begin,
                        std::int64_t rows,
                        std::int64_t columns) {
  return {reinterpret_cast<const T*>(x.data) + begin * x.stride, rows, columns, x.stride};
}

Factor factor_of(const Parts& parts, SumOver sum_over) {
  return {.data = reinterpret_cast<const std::byte*>(parts.to),
          .dtype = DType::BF16,
          .stride = parts.stride,
          .sum_over = sum_over};
}

// Scratch memory, taken piece by piece from the front.
struct Scratch {
  std::byte* next = nullptr;
  std::int64_t bytes = 0;

  template <typename T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kAligned = 256;
    const std::int64_t taken =
        (count * std::int64_t(sizeof(T)) + kAligned - 1) / kAligned * kAligned;
    std::byte* begin = next;
    next += taken;
    bytes -= taken;  // below zero: too little, and the memory is not used
    return reinterpret_cast<T*>(begin);
  }
};

// Some rows of a, and the product of their parts.
struct Piece {
  Matrix<const float> a;
  Parts parts;
  Product product;
  const MatmulPlan* plan = nullptr;
};

Piece piece_of(const Product& whole, const Matrix<const float>& a, const Scratch& room) {
  Piece piece{.a = a, .parts = side_by_side(a), .product = whole};
  piece.parts.to = reinterpret_cast<BFloat16*>(room.next);
  return piece;
}

struct Split {
  std::byte* library = nullptr;  // kLibraryBytes
  std::vector<Piece> pieces;
  // If a sums over its columns: b, three times.
  Matrix<const BFloat16> b;
  Parts b_parts;
  // If a sums over its rows: the parts of the result, `result_part` elements each.
  float* result = nullptr;
  std::int64_t result_part = 0;
  Matrix<float> c;
  Write write = Write::Assign;
};

// Rows of a whose parts there is room for, a multiple of eight.
std::int64_t rows_at_once(const Scratch& room, std::int64_t columns) {
  const std::int64_t bytes_a_row = kParts * padded(columns) * std::int64_t(sizeof(BFloat16));
  return room.bytes < 0 ? 0 : room.bytes / bytes_a_row / kEight * kEight;
}

// Calls add(begin, rows) for pieces of the rows of a. False: there is no room.
template <typename Add>
bool cut_rows(std::int64_t total, std::int64_t at_once, const Add& add) {
  if (at_once == 0) return false;
  for (std::int64_t begin = 0; begin < total; begin += at_once) {
    add(begin, std::min(at_once, total - begin));
  }
  return true;
}

std::byte* moved(std::byte* data, std::int64_t elements, DType dtype) {
  return data + elements * tensor::size_of(dtype);
}

// A piece gives rows of the result.
bool cut_result(Split& split, const Product& whole, Scratch room) {
  const bool b_by_rows = whole.b.sum_over == SumOver::Rows;
  split.b =
      rows_of<BFloat16>(whole.b, 0, b_by_rows ? whole.k : whole.n, b_by_rows ? whole.n : whole.k);
  split.b_parts = b_by_rows ? one_below_the_other(split.b) : side_by_side(split.b);
  split.b_parts.to = room.take<BFloat16>(split.b_parts.elements());
  return cut_rows(whole.m, rows_at_once(room, whole.k), [&](std::int64_t begin, std::int64_t rows) {
    Piece piece = piece_of(whole, rows_of<float>(whole.a, begin, rows, whole.k), room);
    piece.product.m = rows;
    piece.product.k = kParts * padded(whole.k);
    piece.product.a = factor_of(piece.parts, SumOver::Columns);
    piece.product.b = factor_of(split.b_parts, whole.b.sum_over);
    piece.product.c = moved(whole.c, begin * whole.c_stride, whole.c_dtype);
    split.pieces.push_back(piece);
  });
}

// A piece gives a part of the sum. b is used as it is.
bool cut_sum(Split& split, const Product& whole, Scratch room) {
  if (whole.c_dtype != DType::F32 || whole.b.sum_over != SumOver::Rows) return false;
  split.result_part = padded(whole.m) * whole.n;
  split.result = room.take<float>(kParts * split.result_part);
  split.c = {reinterpret_cast<float*>(whole.c), whole.m, whole.n, whole.c_stride};
  split.write = whole.write;
  return cut_rows(whole.k, rows_at_once(room, whole.m), [&](std::int64_t begin, std::int64_t rows) {
    Piece piece = piece_of(whole, rows_of<float>(whole.a, begin, rows, whole.m), room);
    piece.product.m = kParts * padded(whole.m);
    piece.product.k = rows;
    piece.product.a = factor_of(piece.parts, SumOver::Rows);
    piece.product.b.data += begin * whole.b.stride * std::int64_t(sizeof(BFloat16));
    piece.product.c = reinterpret_cast<std::byte*>(split.result);
    piece.product.c_stride = whole.n;
    piece.product.write = begin == 0 ? Write::Assign : Write::Accumulate;
    split.pieces.push_back(piece);
  });
}

bool find_plans(Split& split, Blas& blas) {
  return std::ranges::all_of(split.pieces, [&](Piece& piece) {
    piece.plan = blas.plan_for(piece.product, kLibraryBytes);
    return piece.plan != nullptr;
  });
}

void launch(cudaStream_t stream, const Split& split, const Blas& blas) {
  if (split.b.data != nullptr) launch_make_parts(stream, split.b_parts, split.b);
  for (const Piece& piece : split.pieces) {
    launch_make_parts(stream, piece.parts, piece.a);
    blas.run(*piece.plan, piece.product, split.library, stream);
  }
  if (split.result == nullptr) return;
  const unsigned blocks = blocks_for(split.c.rows * split.c.columns, kThreads);
  add_parts<<<blocks, kThreads, 0, stream>>>(split.c, split.result, split.result_part, split.write);
}

bool is_worth_it(const Product& product) {
  return product.a.dtype == DType::F32 && product.b.dtype == DType::BF16 &&
         product.m * product.n * product.k >= kLeast;
}

}  // namespace
}  // namespace split_product_kernels

bool enqueue_split(Stream& stream, std::string_view name, const Product& product) {
  if (!split_product_kernels::is_worth_it(product)) return false;
  split_product_kernels::Scratch room{scratch<std::byte>(stream, tensor::cuda::kWorkspaceBytes),
                                      tensor::cuda::kWorkspaceBytes};
  split_product_kernels::Split split;
  split.library = room.take<std::byte>(split_product_kernels::kLibraryBytes);
  const bool fits = product.a.sum_over == SumOver::Columns
                        ? split_product_kernels::cut_result(split, product, room)
                        : split_product_kernels::cut_sum(split, product, room);
  Blas& blas = Blas::of_card(tensor::cuda::ordinal_of(stream));
  if (!fits || !split_product_kernels::find_plans(split, blas)) return false;
  enqueue_all(stream, name, WorkClass::Gemm, [=, &blas](cudaStream_t handle) {
    split_product_kernels::launch(handle, split, blas);
  });
  return true;
}

}  // namespace weft::kernels::cuda
