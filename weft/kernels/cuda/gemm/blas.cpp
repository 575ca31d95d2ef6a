#include "weft/kernels/cuda/gemm/blas.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/tensor/cuda/stream.h"

namespace weft::kernels::cuda {
namespace {

constexpr int kProposals = 16;
constexpr std::uint32_t kMostAlignment = 256;  // assumed by the library unless told

// Throws SystemError: "cublasLtMatmul: an absent device architectural feature is required".
void check(std::string_view call, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw base::SystemError(base::text("{}: {}", call, cublasLtGetStatusString(status)));
}

cudaDataType_t type_of(DType dtype) {
  CHECK(dtype == DType::F32 || dtype == DType::BF16, "dtype {}", tensor::name_of(dtype));
  return dtype == DType::F32 ? CUDA_R_32F : CUDA_R_16BF;
}

bool is_mix_of_library(const Product& product) {
  if (product.a.dtype != product.b.dtype) return false;
  return product.a.dtype == DType::BF16 || product.c_dtype == DType::F32;
}

std::uint32_t alignment_of(const std::byte* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t lowest_bit = address & (~address + 1);
  return static_cast<std::uint32_t>(
      std::min<std::uintptr_t>(lowest_bit == 0 ? kMostAlignment : lowest_bit, kMostAlignment));
}

MatmulShape shape_of(const Product& product, std::int64_t workspace_bytes) {
  return {.m = product.m,
          .n = product.n,
          .k = product.k,
          .factors = product.a.dtype,
          .result = product.c_dtype,
          .a_sum_over = product.a.sum_over,
          .b_sum_over = product.b.sum_over,
          .a = {product.a.stride, alignment_of(product.a.data)},
          .b = {product.b.stride, alignment_of(product.b.data)},
          .c = {product.c_stride, alignment_of(product.c)},
          .workspace_bytes = workspace_bytes};
}

// Compute type: fp32 sums of the factors as they are, no TF32.
LtOperation make_operation(const MatmulShape& shape) {
  cublasLtMatmulDesc_t operation = nullptr;
  check("cublasLtMatmulDescCreate",
        cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  LtOperation owned(operation);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, cublasOperation_t value) {
    check("cublasLtMatmulDescSetAttribute",
          cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
  };
  // Column-major, every matrix of ours is transposed already; see MatmulPlan.
  set(CUBLASLT_MATMUL_DESC_TRANSA,
      shape.b_sum_over == SumOver::Columns ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB,
      shape.a_sum_over == SumOver::Columns ? CUBLAS_OP_N : CUBLAS_OP_T);
  return owned;
}

// Layout of a row-major matrix: column-major it is (columns, rows).
LtLayout make_layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  check("cublasLtMatrixLayoutCreate",
        cublasLtMatrixLayoutCreate(&layout,
                                   type_of(dtype),
                                   static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows),
                                   stride));
  return LtLayout(layout);
}

LtLayout make_factor_layout(const MatmulShape& shape,
                            SumOver sum_over,
                            std::int64_t extent,
                            std::int64_t stride) {
  return sum_over == SumOver::Columns ? make_layout(shape.factors, extent, shape.k, stride)
                                      : make_layout(shape.factors, shape.k, extent, stride);
}

using LtPreference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy<cublasLtMatmulPreferenceDestroy>>;

LtPreference make_preference(const MatmulShape& shape) {
  cublasLtMatmulPreference_t preference = nullptr;
  check("cublasLtMatmulPreferenceCreate", cublasLtMatmulPreferenceCreate(&preference));
  LtPreference owned(preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check("cublasLtMatmulPreferenceSetAttribute",
          cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(shape.workspace_bytes));
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.b.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.a.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.c.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.c.alignment);
  return owned;
}

template <typename T>
T config_of(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  check("cublasLtMatmulAlgoConfigGetAttribute",
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, nullptr));
  return value;
}

// True if one block computes each sum. The library tells nothing about stream-K.
bool is_taken(const cublasLtMatmulHeuristicResult_t& proposal, const MatmulShape& shape) {
  if (proposal.state != CUBLAS_STATUS_SUCCESS) return false;
  if (proposal.workspaceSize > std::size_t(shape.workspace_bytes)) return false;
  const auto splits = config_of<std::int32_t>(proposal.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  const auto scheme =
      config_of<std::uint32_t>(proposal.algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  return splits <= 1 && scheme == std::uint32_t(CUBLASLT_REDUCTION_SCHEME_NONE);
}

std::optional<MatmulPlan> make_plan(cublasLtHandle_t handle, const MatmulShape& shape) {
  MatmulPlan plan{.operation = make_operation(shape),
                  .b = make_factor_layout(shape, shape.b_sum_over, shape.n, shape.b.stride),
                  .a = make_factor_layout(shape, shape.a_sum_over, shape.m, shape.a.stride),
                  .c = make_layout(shape.result, shape.m, shape.n, shape.c.stride)};
  const LtPreference preference = make_preference(shape);
  std::array<cublasLtMatmulHeuristicResult_t, kProposals> proposals{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle,
                                                               plan.operation.get(),
                                                               plan.b.get(),
                                                               plan.a.get(),
                                                               plan.c.get(),
                                                               plan.c.get(),
                                                               preference.get(),
                                                               kProposals,
                                                               proposals.data(),
                                                               &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
  check("cublasLtMatmulAlgoGetHeuristic", status);
  const auto proposed = std::span(proposals).first(static_cast<std::size_t>(count));
  const auto taken =
      std::ranges::find_if(proposed, [&](const auto& each) { return is_taken(each, shape); });
  if (taken == proposed.end()) return std::nullopt;
  plan.algorithm = taken->algo;
  plan.workspace_bytes = static_cast<std::int64_t>(taken->workspaceSize);
  return plan;
}

}  // namespace

Blas::Blas() {
  cublasLtHandle_t handle = nullptr;
  check("cublasLtCreate", cublasLtCreate(&handle));
  handle_.reset(handle);
}

// Never destroyed: at the end of the process the CUDA runtime may be gone before.
Blas& Blas::of_card(int ordinal) {
  static std::mutex mutex;
  static auto& cards = *new std::map<int, std::unique_ptr<Blas>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Blas>& card = cards[ordinal];
  if (!card) card.reset(new Blas);
  return *card;
}

const MatmulPlan* Blas::plan_for(const Product& product, std::int64_t workspace_bytes) {
  if (!is_mix_of_library(product)) return nullptr;
  const MatmulShape shape = shape_of(product, workspace_bytes);
  const std::lock_guard lock(mutex_);
  auto found = plans_.find(shape);
  if (found == plans_.end()) {
    found = plans_.emplace(shape, make_plan(handle_.get(), shape)).first;
  }
  return found->second ? &*found->second : nullptr;
}

void Blas::run(const MatmulPlan& plan,
               const Product& product,
               std::byte* workspace,
               cudaStream_t stream) const {
  const float alpha = 1;
  const float beta = product.write == Write::Accumulate ? 1 : 0;
  check("cublasLtMatmul",
        cublasLtMatmul(handle_.get(),
                       plan.operation.get(),
                       &alpha,
                       product.b.data,
                       plan.b.get(),
                       product.a.data,
                       plan.a.get(),
                       &beta,
                       product.c,
                       plan.c.get(),
                       product.c,
                       plan.c.get(),
                       &plan.algorithm,
                       workspace,
                       static_cast<std::size_t>(plan.workspace_bytes),
                       stream));
}

}  // namespace weft::kernels::cuda
