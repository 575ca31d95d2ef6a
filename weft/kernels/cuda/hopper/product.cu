#include <cudaTypedefs.h>

#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "weft/kernels/cuda/device/shared_memory.h"
#include "weft/kernels/cuda/hopper/kernel.h"
#include "weft/kernels/cuda/hopper/product.h"
#include "weft/tensor/cuda/call.h"
#include "weft/tensor/cuda/cards.h"

namespace weft::kernels::cuda {
namespace hopper {
namespace {

using kernels::hopper::candidates_of;
using kernels::hopper::Card;
using kernels::hopper::choose_tile;
using kernels::hopper::TileChoice;

template <typename T>
void launch(cudaStream_t stream, const HopperProduct& product) {
  const auto kernel = grouped_gemm<T>;
  constexpr int kBytes = sizeof(SharedStorage<T>);
  static_assert(kBytes == kernels::hopper::shared_bytes(T::kPass, T::kTile));
  allow_shared(kernel, kBytes);
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {unsigned(T::kTile.cluster), 1, 1};
  // Blocks start beside the kernel that finds the rows, and wait for it when they are set up.
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(product.multiprocessors / T::kTile.cluster * T::kTile.cluster));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  const TensorMaps maps{product.a, product.b, product.c};
  tensor::cuda::check("cudaLaunchKernelEx",
                      cudaLaunchKernelEx(&config, kernel, maps, product.problem));
}

// One instance of the kernel, with what the host must know of its tile.
struct Instance {
  void (*launch)(cudaStream_t, const HopperProduct&);
  std::int64_t (*tiles_of)(std::int64_t rows, std::int64_t column_tiles);
};
template <Pass kPass, std::size_t... kIndices>
constexpr auto instances_of(std::index_sequence<kIndices...>) {
  return std::array{Instance{launch<Traits<kPass, candidates_of(kPass)[kIndices].tile>>,
                             [](std::int64_t rows, std::int64_t column_tiles) {
                               constexpr Tile kTile = candidates_of(kPass)[kIndices].tile;
                               return std::int64_t(
                                   tiles_of<kTile.m, kTile.cluster>(int(rows), int(column_tiles)));
                             }}...};
}
// One for each candidate, in their order.
template <Pass kPass>
constexpr auto kInstances =
    instances_of<kPass>(std::make_index_sequence<candidates_of(kPass).size()>());

// Finds the encoder in the driver, which is not linked.
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

// Row-major matrices behind each other, and the box that one load brings: rows of 128 bytes, of one
// strip of columns or of several, each below the one before.
struct Boxes {
  const std::byte* data;
  DType dtype;
  std::int64_t columns, rows, matrices;
  std::int64_t stride;  // elements from one row to the next
  int box_rows = kBoxRows;
  int box_strips = 0;  // 0: the matrix is not cut into strips
};

CUtensorMap tensor_map(const Boxes& boxes) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = find_encoder();
  const bool single = boxes.dtype == DType::F32;
  const cuuint32_t width = single ? kBoxColumns32 : kBoxColumns;
  const bool strips = boxes.box_strips > 0;
  const auto columns = static_cast<cuuint64_t>(boxes.columns);
  const auto row_bytes = static_cast<cuuint64_t>(boxes.stride * (single ? 4 : 2));
  const cuuint64_t sizes[] = {strips ? width : columns,
                              static_cast<cuuint64_t>(boxes.rows),
                              strips ? columns / width : 1,
                              static_cast<cuuint64_t>(boxes.matrices)};
  const cuuint64_t strides[] = {row_bytes, kBoxRowBytes, row_bytes * sizes[1]};
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

// Asks the driver. Only a build for 90a has the kernel.
Card look_at(int ordinal) {
  const bool is_hopper = tensor::cuda::built_for().find("90a") != std::string_view::npos &&
                         attribute(ordinal, cudaDevAttrComputeCapabilityMajor) == 9 &&
                         attribute(ordinal, cudaDevAttrComputeCapabilityMinor) == 0;
  return {.is_hopper = is_hopper,
          .multiprocessors = attribute(ordinal, cudaDevAttrMultiProcessorCount),
          .shared_bytes = attribute(ordinal, cudaDevAttrMaxSharedMemoryPerBlockOptin)};
}

// Card `ordinal`, which is asked once.
Card card_of(int ordinal) {
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

// True if boxes are clipped at whole pieces of 16 bytes, and coordinates are ints.
bool is_width(std::int64_t size) {
  return size > 0 && size % 8 == 0 && size < std::numeric_limits<int>::max() / 2;
}

bool takes(const Product& p, DType result, std::int64_t experts, std::int64_t room) {
  return p.a.dtype == DType::BF16 && p.b.dtype == DType::BF16 && p.c_dtype == result &&
         experts > 0 && room > 0 && room < std::numeric_limits<int>::max() / 2 &&
         is_addressable(p.a.data, DType::BF16, p.a.stride) &&
         is_addressable(p.b.data, DType::BF16, p.b.stride) &&
         is_addressable(p.c, result, p.c_stride);
}

// True if columns are whole strips: behind the last column of a strip lies the next row.
bool has_strips(std::int64_t columns) { return columns % kBoxColumns == 0; }

// A product with its tile; its tensor maps are not made yet.
struct Planned {
  Tile tile;
  HopperProduct product;
};

// nullopt: the card has no kernel for it, or the tiles are more than an int counts. `rows` are the
// result's, of all experts together, and at most.
template <Pass kPass>
std::optional<Planned> plan(int ordinal,
                            const Product& p,
                            std::int64_t experts,
                            std::int64_t rows) {
  const Card card = card_of(ordinal);
  const TileChoice choice = choose_tile({.pass = kPass, .n = p.n}, card);
  if (choice.best < 0) return std::nullopt;
  const Tile tile = choice.rows[std::size_t(choice.best)].tile;
  const Instance& instance = kInstances<kPass>[std::size_t(choice.best)];
  const std::int64_t column_tiles = (p.n + tile.n - 1) / tile.n;
  if ((rows / tile.m + experts) * column_tiles >= std::numeric_limits<int>::max() / 2) {
    return std::nullopt;
  }
  constexpr bool kByCount = kPass == Pass::Wgrad;
  return Planned{
      .tile = tile,
      .product = {.problem = {.experts = int(experts),
                              .m = int(p.m),
                              .n = int(p.n),
                              .k = int(p.k),
                              .column_tiles = int(column_tiles),
                              .c = p.c,
                              .c_stride = p.c_stride,
                              .write = p.write},
                  .cut = {.rows = tile.m,
                          .of_two = instance.tiles_of(2 * tile.m, column_tiles),
                          .of_one = instance.tiles_of(tile.m, column_tiles),
                          .order = kByCount ? ExpertOrder::ByCount : ExpertOrder::ByNumber},
                  .multiprocessors = card.multiprocessors,
                  .launch = instance.launch}};
}

}  // namespace
}  // namespace hopper

std::optional<HopperProduct> hopper_rows(int ordinal,
                                         const Product& p,
                                         std::int64_t experts,
                                         std::int64_t room) {
  using namespace hopper;
  CHECK(p.write == Write::Assign, "rows of experts are assigned");
  if (p.a.sum_over != SumOver::Columns || !is_width(p.n) || !is_width(p.k)) return std::nullopt;
  if (!takes(p, DType::BF16, experts, room)) return std::nullopt;
  const bool forward = p.b.sum_over == SumOver::Columns;
  if (!forward && !has_strips(p.n)) return std::nullopt;
  std::optional<Planned> planned = forward ? plan<Pass::Forward>(ordinal, p, experts, room)
                                           : plan<Pass::Dgrad>(ordinal, p, experts, room);
  if (!planned) return std::nullopt;
  auto& [tile, product] = *planned;
  product.a = tensor_map({.data = p.a.data,
                          .dtype = DType::BF16,
                          .columns = p.k,
                          .rows = room,
                          .matrices = 1,
                          .stride = p.a.stride,
                          .box_rows = tile.m});
  product.b = tensor_map({.data = p.b.data,
                          .dtype = DType::BF16,
                          .columns = forward ? p.k : p.n,
                          .rows = forward ? p.n : p.k,
                          .matrices = experts,
                          .stride = p.b.stride,
                          .box_rows = forward ? tile.n / 2 : tile.k / 2,
                          .box_strips = forward ? 0 : tile.n / kBoxColumns});
  product.c = tensor_map({.data = p.c,
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
  using namespace hopper;
  if (p.a.sum_over != SumOver::Rows || p.b.sum_over != SumOver::Rows) return std::nullopt;
  if (!is_width(p.m) || !is_width(p.n)) return std::nullopt;
  if (!has_strips(p.m) || !has_strips(p.n)) return std::nullopt;
  if (!takes(p, DType::F32, experts, room)) return std::nullopt;
  std::optional<Planned> planned = plan<Pass::Wgrad>(ordinal, p, experts, p.m * experts);
  if (!planned) return std::nullopt;
  auto& [tile, product] = *planned;
  const auto factor_map = [&](const Factor& factor, std::int64_t columns, int rows, int strips) {
    return tensor_map({.data = factor.data,
                       .dtype = DType::BF16,
                       .columns = columns,
                       .rows = room,
                       .matrices = 1,
                       .stride = factor.stride,
                       .box_rows = rows,
                       .box_strips = strips});
  };
  product.a = factor_map(p.a, p.m, tile.k, tile.m / kBoxColumns);
  product.b = factor_map(p.b, p.n, tile.k / 2, tile.n / kBoxColumns);
  product.c = tensor_map({.data = p.c,
                          .dtype = DType::F32,
                          .columns = p.n,
                          .rows = p.m,
                          .matrices = experts,
                          .stride = p.c_stride});
  return product;
}

}  // namespace weft::kernels::cuda
