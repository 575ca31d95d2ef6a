// Random noise on a router's inputs. A draw depends on the token, never on the rank.
#include <vector>

#include "weft/base/random.h"
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

void jitter(Stream& stream, Tensor y, Tensor x, float epsilon, const Noise& noise) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<T> from = matrix<T>(stream, x), to = matrix<T>(stream, y);
    enqueue(stream, "jitter", WorkClass::Memory, [=](Workers& workers) {
      parallel(workers, cut_rows(from.rows, from.columns), [&](Range rows) {
        for (std::int64_t t = rows.begin; t < rows.end; ++t) {
          const std::int64_t first = noise.tokens.of_row(t) * from.columns;
          for (std::int64_t i = 0; i < from.columns; ++i) {
            const double u = base::uniform(noise.key, static_cast<std::uint64_t>(first + i));
            const float factor = 1.0f + epsilon * static_cast<float>(2 * u - 1);
            store(to.row(t)[i], factor * load(from.row(t)[i]));
          }
        }
      });
    });
  });
}

void random_logits(Stream& stream, Tensor logits, const RandomLogits& options) {
  const Matrix<float> xs = matrix<float>(stream, logits);
  enqueue(stream, "random_logits", WorkClass::Memory, [=](Workers& workers) {
    const auto n = static_cast<std::size_t>(xs.columns);
    std::vector<float> bias(n, 0.0f);
    if (options.deviation != 0) base::normals(options.expert_key, 0, bias);
    parallel(workers, cut_rows(xs.rows, xs.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const std::int64_t first = options.noise.tokens.of_row(t) * xs.columns;
        const std::span<float> row(xs.row(t), n);
        base::normals(options.noise.key, static_cast<std::uint64_t>(first), row);
        for (std::size_t e = 0; e < n; ++e) row[e] += options.deviation * bias[e];
      }
    });
  });
}

}  // namespace weft::kernels::cpu
