// Randomness in front of the router. Draws depend on the token, never on the rank that draws.
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/random.h"

namespace weft::kernels::cuda {
namespace router_noise_kernels {
namespace {

// A block takes 32 columns of 8 rows at a time, and a thread stays in its column.
constexpr unsigned kBlockColumns = 32, kBlockRows = 8;

Grid columns_grid(std::int64_t rows, std::int64_t columns) {
  const auto across = unsigned((columns + kBlockColumns - 1) / kBlockColumns);
  return {{across, blocks_for(rows, kBlockRows)}, {kBlockColumns, kBlockRows}};
}

__device__ std::int64_t own_column() {
  return std::int64_t(blockIdx.x) * kBlockColumns + threadIdx.x;
}
__device__ std::int64_t first_row_of_thread() {
  return std::int64_t(blockIdx.y) * kBlockRows + threadIdx.y;
}
__device__ std::int64_t row_step() { return std::int64_t(gridDim.y) * kBlockRows; }

template <typename T>
__global__ void multiply(Matrix<T> y, Matrix<T> x, float epsilon, Noise noise) {
  const std::int64_t i = own_column();
  if (i >= x.columns) return;
  for (std::int64_t t = first_row_of_thread(); t < x.rows; t += row_step()) {
    const std::int64_t element = noise.tokens.of_row(t) * x.columns + i;
    const double u = uniform(noise.key, std::uint64_t(element));
    const float factor = 1.0f + epsilon * float(2 * u - 1);
    store(y.row(t)[i], factor * load(x.row(t)[i]));
  }
}

__global__ void draw_logits(Matrix<float> logits, RandomLogits options) {
  const std::int64_t e = own_column();
  if (e >= logits.columns) return;
  const float deviation = options.deviation;
  const float bias = deviation != 0 ? normal_at(options.expert_key, std::uint64_t(e)) : 0.0f;
  for (std::int64_t t = first_row_of_thread(); t < logits.rows; t += row_step()) {
    const std::int64_t element = options.noise.tokens.of_row(t) * logits.columns + e;
    const float drawn = normal_at(options.noise.key, std::uint64_t(element));
    logits.row(t)[e] = drawn + deviation * bias;
  }
}

}  // namespace
}  // namespace router_noise_kernels

void jitter(Stream& stream, Tensor y, Tensor x, float epsilon, const Noise& noise) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    enqueue(stream,
            "jitter",
            WorkClass::Memory,
            router_noise_kernels::columns_grid(x.dim(0), x.dim(1)),
            router_noise_kernels::multiply<T>,
            matrix<T>(stream, y),
            matrix<T>(stream, x),
            epsilon,
            noise);
  });
}

void random_logits(Stream& stream, Tensor logits, const RandomLogits& options) {
  enqueue(stream,
          "random_logits",
          WorkClass::Memory,
          router_noise_kernels::columns_grid(logits.dim(0), logits.dim(1)),
          router_noise_kernels::draw_logits,
          matrix<float>(stream, logits),
          options);
}

}  // namespace weft::kernels::cuda
