#include <cudaTypedefs.h>

#include <limits>
#include <map>
#include <mutex>
#include <string_view>

#include "weft/kernels/cuda/device/shared_memory.h"
#include "weft/kernels/cuda/hopper/kernel.h"
#include "weft/kernels/cuda/hopper/product.h"
#include "weft/tensor/cuda/call.h"
#include "weft/tensor/cuda/cards.h"

namespace weft::kernels::cuda {
namespace {

using namespace hopper;

template <typename Kind, int kColumns, int kBlocks>
void launch(cudaStream_t stream, const HopperProduct& product) {
  const auto kernel = grouped_product<Kind, kColumns, kBlocks>;
  constexpr int kBytes = sizeof(Shared<Kind, kColumns>);
  allow_shared(kernel, kBytes);
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {kBlocks, 1, 1};
  // Blocks start beside the kernel that finds the rows, and wait for it when they are set up.
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(product.multiprocessors / kBlocks * kBlocks));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  const Maps maps{product.a, product.b, product.c};
  tensor::cuda::check("cudaLaunchKernelEx",
                      cudaLaunchKernelEx(&config, kernel, maps, product.work));
}

// Part of the driver, which is not linked.
PFN_cuTensorMapEncodeTiled_v12000 find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled",
                                                             &function,
                                                             12000,
                                                             cudaEnableDefault,
                                                             &found);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
  tensor::cuda::check("cudaGetDriverEntryPoint", error);
  CHECK(found == cudaDriverEntryPointSuccess && function != nullptr, "a driver without TMA");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

// Row-major matrices behind each other, and what one copy brings of them: rows of 128 bytes, of one
// strip of columns or of several, each below the one before.
struct Boxes {
  const std::byte* data;
  DType dtype;
  std::int64_t columns, rows, matrices;
  std::int64_t stride;  // elements from one row to the next
  int box_rows = kBoxRows;
  int box_strips = 0;  // none: the matrix is not cut into strips
};

CUtensorMap map_of(const Boxes& boxes) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = find_encoder();
  const bool single = boxes.dtype == DType::F32;
  const cuuint32_t width = single ? 32 : 64;  // elements of 128 bytes
  const bool strips = boxes.box_strips > 0;
  const auto columns = static_cast<cuuint64_t>(boxes.columns);
  const auto row_bytes = static_cast<cuuint64_t>(boxes.stride * (single ? 4 : 2));
  const cuuint64_t sizes[] = {strips ? width : columns,
                              static_cast<cuuint64_t>(boxes.rows),
                              strips ? columns / width : 1,
                              static_cast<cuuint64_t>(boxes.matrices)};
  const cuuint64_t strides[] = {row_bytes, kBoxRow, row_bytes * sizes[1]};
  const cuuint32_t box[] = {width,
                            static_cast<cuuint32_t>(boxes.box_rows),
                            strips ? static_cast<cuuint32_t>(boxes.box_strips) : 1,
                            1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult result =
      encode(&map,
             single ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
             4,
             const_cast<std::byte*>(boxes.data),
             sizes,
             strides,
             box,
             steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  CHECK(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled: {}", int(result));
  return map;
}

int attribute(int ordinal, cudaDeviceAttr name) {
  int value = 0;
  tensor::cuda::check("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&value, name, ordinal));
  return value;
}

struct Card {
  bool is_hopper = false;
  int multiprocessors = 0;
};

// The card, and this build: only what is compiled for 90a has the kernel.
Card look_at(int ordinal) {
  const bool is_hopper = tensor::cuda::built_for().find("90a") != std::string_view::npos &&
                         attribute(ordinal, cudaDevAttrComputeCapabilityMajor) == 9 &&
                         attribute(ordinal, cudaDevAttrComputeCapabilityMinor) == 0;
  return {is_hopper, attribute(ordinal, cudaDevAttrMultiProcessorCount)};
}

// Asked once.
Card card(int ordinal) {
  static std::mutex mutex;
  static std::map<int, Card> cards;
  const std::lock_guard lock(mutex);
  const auto found = cards.find(ordinal);
  return found != cards.end() ? found->second : cards[ordinal] = look_at(ordinal);
}

bool is_addressable(const std::byte* data, DType dtype, std::int64_t stride) {
  const std::int64_t bytes = stride * (dtype == DType::F32 ? 4 : 2);
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && bytes % 16 == 0;
}

// A size that clips boxes at whole pieces of 16 bytes and is a coordinate.
bool is_width(std::int64_t size) {
  return size > 0 && size % 8 == 0 && size < std::numeric_limits<int>::max() / 2;
}

bool takes(int ordinal, const Product& p, DType result, std::int64_t experts, std::int64_t room) {
  return p.a.dtype == DType::BF16 && p.b.dtype == DType::BF16 && p.c_dtype == result &&
         experts > 0 && room > 0 && room < std::numeric_limits<int>::max() / 2 &&
         is_addressable(p.a.data, DType::BF16, p.a.stride) &&
         is_addressable(p.b.data, DType::BF16, p.b.stride) &&
         is_addressable(p.c, result, p.c_stride) && card(ordinal).is_hopper;
}

// Tiles of 128 columns have less to do with each byte that is loaded: they are for results that
// would leave much of wider ones empty.
template <typename Kind>
int columns_of_tile(std::int64_t n) {
  constexpr int kNarrow = 128;
  const auto covered = [n](std::int64_t columns) { return (n + columns - 1) / columns * columns; };
  return 5 * covered(kWide<Kind>) > 6 * covered(kNarrow) ? kNarrow : kWide<Kind>;
}

// Whole strips: behind the last column of one lies the next row.
bool has_strips(std::int64_t columns) { return columns % kBoxColumns == 0; }

// Of clusters of two blocks.
template <typename Kind>
HopperProduct with_tiles(int ordinal, const Product& p, std::int64_t experts) {
  const int columns = columns_of_tile<Kind>(p.n);
  const std::int64_t column_tiles = (p.n + columns - 1) / columns;
  HopperProduct product;
  product.work = {.experts = int(experts),
                  .m = int(p.m),
                  .n = int(p.n),
                  .k = int(p.k),
                  .column_tiles = int(column_tiles),
                  .c = p.c,
                  .c_stride = p.c_stride,
                  .write = p.write};
  constexpr bool kSums = Kind::kGrouped == Grouped::Sums;
  product.cut = {.rows = kTileRows,
                 .of_two = column_tiles,
                 .of_one = (column_tiles + 1) / 2,
                 .order = kSums ? ExpertOrder::ByCount : ExpertOrder::ByNumber};
  product.multiprocessors = card(ordinal).multiprocessors;
  product.launch = columns == kWide<Kind> ? launch<Kind, kWide<Kind>, 2> : launch<Kind, 128, 2>;
  return product;
}

// Whether no count of tiles is more than an int holds.
bool is_countable(std::int64_t row_tiles, std::int64_t n) {
  return row_tiles * ((n + 127) / 128) < std::numeric_limits<int>::max() / 2;
}

}  // namespace

std::optional<HopperProduct> hopper_rows(int ordinal,
                                         const Product& p,
                                         std::int64_t experts,
                                         std::int64_t room) {
  CHECK(p.write == Write::Assign, "rows of experts are assigned");
  if (p.a.sum_over != SumOver::Columns || !is_width(p.n) || !is_width(p.k)) return std::nullopt;
  if (!takes(ordinal, p, DType::BF16, experts, room)) return std::nullopt;
  if (!is_countable(room / kTileRows + experts, p.n)) return std::nullopt;
  const bool forward = p.b.sum_over == SumOver::Columns;
  if (!forward && !has_strips(p.n)) return std::nullopt;
  const int columns = columns_of_tile<Forward>(p.n);
  HopperProduct product =
      forward ? with_tiles<Forward>(ordinal, p, experts) : with_tiles<Dgrad>(ordinal, p, experts);
  product.a = map_of({.data = p.a.data,
                      .dtype = DType::BF16,
                      .columns = p.k,
                      .rows = room,
                      .matrices = 1,
                      .stride = p.a.stride,
                      .box_rows = kTileRows});
  product.b = map_of({.data = p.b.data,
                      .dtype = DType::BF16,
                      .columns = forward ? p.k : p.n,
                      .rows = forward ? p.n : p.k,
                      .matrices = experts,
                      .stride = p.b.stride,
                      .box_rows = forward ? columns / 2 : kHalfDepth,
                      .box_strips = forward ? 0 : columns / kBoxColumns});
  product.c = map_of({.data = p.c,
                      .dtype = DType::BF16,
                      .columns = p.n,
                      .rows = room,
                      .matrices = 1,
                      .stride = p.c_stride});
  return product;
}

std::optional<HopperProduct> hopper_sums(int ordinal,
                                         const Product& p,
                                         std::int64_t experts,
                                         std::int64_t room) {
  if (p.a.sum_over != SumOver::Rows || p.b.sum_over != SumOver::Rows) return std::nullopt;
  if (!is_width(p.m) || !is_width(p.n)) return std::nullopt;
  if (!has_strips(p.m) || !has_strips(p.n)) return std::nullopt;
  if (!takes(ordinal, p, DType::F32, experts, room)) return std::nullopt;
  if (!is_countable((p.m + kTileRows - 1) / kTileRows * experts, p.n)) return std::nullopt;
  HopperProduct product = with_tiles<Wgrad>(ordinal, p, experts);
  const auto factor_map = [&](const Factor& factor, std::int64_t columns, int rows, int strips) {
    return map_of({.data = factor.data,
                   .dtype = DType::BF16,
                   .columns = columns,
                   .rows = room,
                   .matrices = 1,
                   .stride = factor.stride,
                   .box_rows = rows,
                   .box_strips = strips});
  };
  product.a = factor_map(p.a, p.m, kDepth, kTileRows / kBoxColumns);
  product.b = factor_map(p.b, p.n, kHalfDepth, columns_of_tile<Wgrad>(p.n) / kBoxColumns);
  product.c = map_of({.data = p.c,
                      .dtype = DType::F32,
                      .columns = p.n,
                      .rows = p.m,
                      .matrices = experts,
                      .stride = p.c_stride});
  return product;
}

}  // namespace weft::kernels::cuda
