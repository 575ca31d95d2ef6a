// The tensor cores of Hopper: products of tiles in shared memory, summed in registers. All 128
// threads of a warpgroup do what is said here together.
//
// A factor's slice lies in boxes of 64 rows of 128 bytes, as the copy engine writes them with its
// 128 byte swizzle, at multiples of 1024 bytes: the 16 byte piece c of row r lies at r * 128 +
// (c ^ r % 8) * 16. Summed over the columns of the matrix, a row of a box is an index of the result
// (i) with 64 of the sum (d), and boxes lie behind each other in i; summed over its rows, a row of
// a box is one d with 64 of i, and the boxes are neighbours in i. Boxes of half of a slice have 32
// of d, and the second half lies behind all boxes of the first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/gemm/product.h"
#include "weft/kernels/cuda/hopper/tma.h"

namespace weft::kernels::cuda::hopper {

inline constexpr int kBoxRow = 128;  // bytes
inline constexpr int kBoxRows = 64;
inline constexpr int kBoxColumns = 64;  // of bf16
inline constexpr int kBox = kBoxRow * kBoxRows;
inline constexpr int kDepth = 64;      // of d in a slice
inline constexpr int kStepDepth = 16;  // of d in one product

// Where the factor of a product lies: an address, the bytes from 64 of i to the next 64 (read only
// where rows are summed over, from boxes of so many rows), the bytes from 8 rows to the next 8, and
// the swizzle; lengths in units of 16 bytes.
template <SumOver kSumOver>
__device__ __forceinline__ std::uint64_t slice_at(const std::byte* boxes, int box_rows = kBoxRows) {
  const std::uint64_t along = kSumOver == SumOver::Rows ? box_rows * kBoxRow / 16 : 1;
  constexpr std::uint64_t kEightRows = 8 * kBoxRow / 16;
  constexpr std::uint64_t kSwizzle128 = 1;
  return std::uint64_t((shared_address(boxes) & 0x3ffff) >> 4) | along << 16 | kEightRows << 32 |
         kSwizzle128 << 62;
}
// From one product of a slice to the next, in those units.
template <SumOver kSumOver>
inline constexpr int kStep = (kSumOver == SumOver::Rows ? kStepDepth * kBoxRow : kStepDepth * 2) /
                             16;

// The sums of a thread over 64 rows: element (16 w + l / 4 + 8 h, 8 i + l % 4 * 2 + j) of lane l of
// warp w is sums[4 i + 2 h + j].

// Before the first product after other code touched the sums.
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// What was asked for since the last call is one batch.
__device__ __forceinline__ void end_batch() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Returns when no more than the last kPending batches are under way.
template <int kPending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// The compiler does not know that products write the sums after their instruction: called where
// they are over, before the sums are read.
template <int kCount>
__device__ __forceinline__ void settle(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// clang-format off
#define WEFT_SUMS_8(i)                                                             \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), \
  "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

// Asks for d (64 rows) += a b^T over 16 of d; d = a b^T where `add` is zero. The number of columns
// is twice that of a thread's sums.
template <SumOver kA, SumOver kB>
__device__ __forceinline__ void multiply(float (&d)[128], std::uint64_t a, std::uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
      "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "
      "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "
      "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "
      "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "
      "%125, %126, %127"
      "}, %128, %129, add, 1, 1, %131, %132;\n}\n"
      : WEFT_SUMS_8(0), WEFT_SUMS_8(8), WEFT_SUMS_8(16), WEFT_SUMS_8(24), WEFT_SUMS_8(32),
        WEFT_SUMS_8(40), WEFT_SUMS_8(48), WEFT_SUMS_8(56), WEFT_SUMS_8(64), WEFT_SUMS_8(72),
        WEFT_SUMS_8(80), WEFT_SUMS_8(88), WEFT_SUMS_8(96), WEFT_SUMS_8(104), WEFT_SUMS_8(112),
        WEFT_SUMS_8(120)
      : "l"(a), "l"(b), "r"(add), "n"(kA == SumOver::Rows), "n"(kB == SumOver::Rows));
}
template <SumOver kA, SumOver kB>
__device__ __forceinline__ void multiply(float (&d)[96], std::uint64_t a, std::uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %98, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
      "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "
      "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "
      "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
      "}, %96, %97, add, 1, 1, %99, %100;\n}\n"
      : WEFT_SUMS_8(0), WEFT_SUMS_8(8), WEFT_SUMS_8(16), WEFT_SUMS_8(24), WEFT_SUMS_8(32),
        WEFT_SUMS_8(40), WEFT_SUMS_8(48), WEFT_SUMS_8(56), WEFT_SUMS_8(64), WEFT_SUMS_8(72),
        WEFT_SUMS_8(80), WEFT_SUMS_8(88)
      : "l"(a), "l"(b), "r"(add), "n"(kA == SumOver::Rows), "n"(kB == SumOver::Rows));
}
template <SumOver kA, SumOver kB>
__device__ __forceinline__ void multiply(float (&d)[64], std::uint64_t a, std::uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
      "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, add, 1, 1, %67, %68;\n}\n"
      : WEFT_SUMS_8(0), WEFT_SUMS_8(8), WEFT_SUMS_8(16), WEFT_SUMS_8(24), WEFT_SUMS_8(32),
        WEFT_SUMS_8(40), WEFT_SUMS_8(48), WEFT_SUMS_8(56)
      : "l"(a), "l"(b), "r"(add), "n"(kA == SumOver::Rows), "n"(kB == SumOver::Rows));
}
#undef WEFT_SUMS_8
// clang-format on

}  // namespace weft::kernels::cuda::hopper
