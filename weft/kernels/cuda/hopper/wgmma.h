// wgmma, the tensor core instructions of Hopper: products of boxes in shared memory, accumulated in
// registers. All 128 threads of a warpgroup call each function together.
//
// A k-block of a factor is made of boxes of 64 rows of 128 bytes. TMA writes them with its 128 byte
// swizzle, at multiples of 1024 bytes: the 16 byte piece c of row r is at r * 128 + (c ^ r % 8)
// * 16. A factor summed over its columns is K-major: a row of a box is one index of the result (i)
// with 64 of the sum (d), and boxes follow each other in i. A factor summed over its rows is
// MN-major: a row of a box is one d with 64 of i, and boxes are neighbours in i. Boxes of half a
// k-block have 32 of d; the second half follows all boxes of the first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/gemm/product.h"
#include "weft/kernels/cuda/hopper/barriers.h"
#include "weft/kernels/hopper_tile.h"

namespace weft::kernels::cuda::hopper {

using kernels::hopper::kBoxBytes;
using kernels::hopper::kBoxRowBytes;
using kernels::hopper::kBoxRows;

inline constexpr int kBoxColumns = 64;        // bf16 columns
inline constexpr int kMmaM = 64, kMmaK = 16;  // rows of the accumulators of a wgmma, and its depth
inline constexpr int kDescriptorUnit = 16;    // bytes: the unit of lengths in descriptors

// Shared memory descriptor of a factor: address, leading and stride byte offset, swizzle. The
// leading offset leads from 64 of i to the next 64. Only MN-major factors use it; `box_rows` says
// how many rows their boxes have. The stride offset leads from 8 rows to the next 8.
template <SumOver kSumOver>
__device__ __forceinline__ std::uint64_t shared_descriptor(const std::byte* boxes,
                                                           int box_rows = kBoxRows) {
  const std::uint64_t leading =
      kSumOver == SumOver::Rows ? box_rows * kBoxRowBytes / kDescriptorUnit : 1;
  constexpr std::uint64_t kStride = 8 * kBoxRowBytes / kDescriptorUnit;
  constexpr std::uint64_t kSwizzle128 = 1;
  return std::uint64_t((shared_address(boxes) & 0x3ffff) >> 4) | leading << 16 | kStride << 32 |
         kSwizzle128 << 62;
}
// Advance of a descriptor from one wgmma of a k-block to the next.
template <SumOver kSumOver>
inline constexpr int kMmaStep =
    (kSumOver == SumOver::Rows ? kMmaK * kBoxRowBytes : kMmaK * 2) / kDescriptorUnit;

// Accumulators of a thread, for 64 rows: acc[4 i + 2 h + j] is element (16 w + l / 4 + 8 h,
// 8 i + l % 4 * 2 + j), for lane l of warp w.

// Called before the first wgmma after other code touched the accumulators.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// Closes a wgmma group: all wgmmas since the last commit.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until no more than the last kPending groups are in flight.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Tells the compiler that the accumulators changed: a wgmma writes them after its instruction.
// Called after wgmma_wait, before the accumulators are read.
template <int kCount>
__device__ __forceinline__ void fence_accumulators(float (&acc)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(acc[i])::"memory");
}

// clang-format off
#define WEFT_ACC_8(i)                                                             \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), \
  "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])

// Issues d (64 rows) += a b^T over a depth of 16; d = a b^T if `add` is zero. A thread has one
// accumulator for two columns.
template <SumOver kA, SumOver kB>
__device__ __forceinline__ void wgmma(float (&d)[128], std::uint64_t a, std::uint64_t b, int add) {
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
      : WEFT_ACC_8(0), WEFT_ACC_8(8), WEFT_ACC_8(16), WEFT_ACC_8(24), WEFT_ACC_8(32),
        WEFT_ACC_8(40), WEFT_ACC_8(48), WEFT_ACC_8(56), WEFT_ACC_8(64), WEFT_ACC_8(72),
        WEFT_ACC_8(80), WEFT_ACC_8(88), WEFT_ACC_8(96), WEFT_ACC_8(104), WEFT_ACC_8(112),
        WEFT_ACC_8(120)
      : "l"(a), "l"(b), "r"(add), "n"(kA == SumOver::Rows), "n"(kB == SumOver::Rows));
}
template <SumOver kA, SumOver kB>
__device__ __forceinline__ void wgmma(float (&d)[96], std::uint64_t a, std::uint64_t b, int add) {
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
      : WEFT_ACC_8(0), WEFT_ACC_8(8), WEFT_ACC_8(16), WEFT_ACC_8(24), WEFT_ACC_8(32),
        WEFT_ACC_8(40), WEFT_ACC_8(48), WEFT_ACC_8(56), WEFT_ACC_8(64), WEFT_ACC_8(72),
        WEFT_ACC_8(80), WEFT_ACC_8(88)
      : "l"(a), "l"(b), "r"(add), "n"(kA == SumOver::Rows), "n"(kB == SumOver::Rows));
}
template <SumOver kA, SumOver kB>
__device__ __forceinline__ void wgmma(float (&d)[64], std::uint64_t a, std::uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "
      "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, add, 1, 1, %67, %68;\n}\n"
      : WEFT_ACC_8(0), WEFT_ACC_8(8), WEFT_ACC_8(16), WEFT_ACC_8(24), WEFT_ACC_8(32),
        WEFT_ACC_8(40), WEFT_ACC_8(48), WEFT_ACC_8(56)
      : "l"(a), "l"(b), "r"(add), "n"(kA == SumOver::Rows), "n"(kB == SumOver::Rows));
}
#undef WEFT_ACC_8
// clang-format on

}  // namespace weft::kernels::cuda::hopper
