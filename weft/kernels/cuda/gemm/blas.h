// The only caller of cuBLASLt.
//
// A rule chooses one algorithm per shape, never timing: the first that the library proposes whose
// sums are not split among blocks. So the same shapes give the same bits, beside any other work, as
// long as the library and the card are the same.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "weft/kernels/cuda/gemm/product.h"

namespace weft::kernels::cuda {

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};
using LtHandle = std::unique_ptr<cublasLtContext, Destroy<cublasLtDestroy>>;
using LtOperation = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<cublasLtMatmulDescDestroy>>;
using LtLayout =
    std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<cublasLtMatrixLayoutDestroy>>;

// Everything that the choice of an algorithm may depend on.
struct MatmulShape {
  struct Matrix {
    std::int64_t stride = 0;
    std::uint32_t alignment = 0;  // alignment of the address, in bytes
    auto operator<=>(const Matrix&) const = default;
  };

  std::int64_t m = 0, n = 0, k = 0;
  DType factors = DType::F32, result = DType::F32;
  SumOver a_sum_over = SumOver::Columns, b_sum_over = SumOver::Columns;
  Matrix a, b, c;
  std::int64_t workspace_bytes = 0;  // available
  auto operator<=>(const MatmulShape&) const = default;
};

// Plan of a product. The library's matrices are column-major: c^T (n, m) = b a^T, so that b is its
// first factor.
struct MatmulPlan {
  LtOperation operation;
  LtLayout b, a, c;
  cublasLtMatmulAlgo_t algorithm{};
  std::int64_t workspace_bytes = 0;
};

class Blas {
 public:
  // Requires the calling thread's card to be this one.
  static Blas& of_card(int ordinal);

  // nullptr: the library has no algorithm for it, or none that we take. A plan keeps its address.
  const MatmulPlan* plan_for(const Product& product, std::int64_t workspace_bytes);

  // Enqueues a product of the plan's shape. None of its sizes is zero.
  void run(const MatmulPlan& plan,
           const Product& product,
           std::byte* workspace,
           cudaStream_t stream) const;

 private:
  Blas();

  LtHandle handle_;
  std::mutex mutex_;  // guards the plans
  std::map<MatmulShape, std::optional<MatmulPlan>> plans_;
};

}  // namespace weft::kernels::cuda
