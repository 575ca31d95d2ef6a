#include "weft/measure/device/device_products.h"

#include <algorithm>
#include <numeric>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/kernels/kernels.h"

namespace weft::measure {
namespace {

using base::number;
using base::text;
using kernels::Write;
using tensor::DType;
using tensor::Tensor;

// Size of a model's values: the rate of a product depends on them.
constexpr float kWeights = 0.02f;

class Product {
 public:
  Product(DeviceTimer& timer,
          const NoteOperation& note,
          std::string name,
          std::string shape,
          double flop)
      : timer_(timer), note_(note), name_(std::move(name)), shape_(std::move(shape)), flop_(flop) {}

  template <typename Work>
  DeviceRate measure(const char* direction, const Work& work) const {
    const std::string name = text("{} {}", name_, direction);
    note_(name);
    return {.name = name,
            .shape = shape_,
            .unit = WorkUnit::Flop,
            .work = flop_,
            .seconds = timer_.seconds_of(work)};
  }

 private:
  DeviceTimer& timer_;
  const NoteOperation& note_;
  const std::string name_, shape_;
  const double flop_;
};

}  // namespace

std::vector<DenseProduct> dense_products(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const std::int64_t tokens = config.train.micro_batch_size * model.seq_length;
  const std::int64_t hidden = model.hidden_size;
  std::vector<DenseProduct> products{
      {.name = "qkv",
       .rows = tokens,
       .n = model.query_width() + 2 * model.key_width(),
       .k = hidden},
      {.name = "proj", .rows = tokens, .n = hidden, .k = model.query_width()},
      {.name = "head",
       .rows = std::min<std::int64_t>(tokens, 4096),
       .n = model.vocab_size,
       .k = hidden,
       .result = DType::F32}};
  if (model.experts() > 0) {
    products.push_back({.name = "router",
                        .rows = tokens,
                        .n = model.experts(),
                        .k = hidden,
                        .result = DType::F32,
                        .gradient = DType::F32});
  }
  return products;
}

std::int64_t GroupedProduct::all_rows() const {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

std::vector<GroupedProduct> grouped_products(const config::ModelConfig& model) {
  const std::int64_t experts = model.experts(), hidden = model.hidden_size;
  const std::int64_t width = model.expert_width();
  std::vector<GroupedProduct> products;
  const auto add = [&](const std::string& rows_name, const std::vector<std::int64_t>& rows) {
    products.push_back(
        {.name = "FC1", .rows_name = rows_name, .rows = rows, .n = 2 * width, .k = hidden});
    products.push_back(
        {.name = "FC2", .rows_name = rows_name, .rows = rows, .n = hidden, .k = width});
  };
  const auto add_equal = [&](std::int64_t count, std::int64_t rows) {
    add(text("{} x {} rows", count, rows), std::vector<std::int64_t>(base::at(count), rows));
  };
  add_equal(experts, 256);
  add_equal(experts, 1024);
  add_equal(std::max<std::int64_t>(1, experts / 8), 8192);
  add(text("{} x 0 to 2047 rows", experts), uneven_rows(experts, 1024));
  return products;
}

ProductRates bench_product(DeviceTimer& timer,
                           const DenseProduct& product,
                           const NoteOperation& note) {
  const auto [name, rows, n, k, result, gradient] = product;
  const Product timed(timer,
                      note,
                      name,
                      text("{} x {} x {}", rows, n, k),
                      product_flop(number(rows), number(n), number(k)));
  tensor::Stream& stream = timer.stream();
  const Tensor x = timer.random(DType::BF16, {rows, k}), dx = timer.empty(DType::BF16, {rows, k});
  const Tensor w = timer.random(DType::BF16, {n, k}, kWeights);
  const Tensor y = timer.empty(result, {rows, n}), dy = timer.random(gradient, {rows, n});
  const Tensor dw = timer.zeros(DType::F32, {n, k});
  return {.forward = timed.measure("forward", [&] { kernels::linear_forward(stream, y, x, w); }),
          .dgrad = timed.measure("dgrad", [&] { kernels::linear_dgrad(stream, dx, dy, w); }),
          .wgrad = timed.measure("wgrad",
                                 [&] { kernels::linear_wgrad(stream, dw, dy, x, Write::Assign); }),
          .adding_wgrad = timed.measure("wgrad, adding", [&] {
            kernels::linear_wgrad(stream, dw, dy, x, Write::Accumulate);
          })};
}

ProductRates bench_product(DeviceTimer& timer,
                           const GroupedProduct& product,
                           const NoteOperation& note) {
  const std::int64_t all = product.all_rows(), n = product.n, k = product.k;
  const std::int64_t experts = std::ssize(product.rows);
  const Product timed(timer,
                      note,
                      product.name,
                      product.rows_name,
                      product_flop(number(all), number(n), number(k)));
  tensor::Stream& stream = timer.stream();
  const Tensor rows = timer.of<std::int64_t>(DType::I64, {experts}, product.rows);
  const Tensor x = timer.random(DType::BF16, {all, k}), dx = timer.empty(DType::BF16, {all, k});
  const Tensor w = timer.random(DType::BF16, {experts, n, k}, kWeights);
  const Tensor y = timer.empty(DType::BF16, {all, n}), dy = timer.random(DType::BF16, {all, n});
  const Tensor dw = timer.zeros(DType::F32, {experts, n, k});
  return {.forward = timed.measure("forward",
                                   [&] { kernels::grouped_linear_forward(stream, y, x, w, rows); }),
          .dgrad = timed.measure("dgrad",
                                 [&] { kernels::grouped_linear_dgrad(stream, dx, dy, w, rows); }),
          .wgrad = timed.measure(
              "wgrad",
              [&] { kernels::grouped_linear_wgrad(stream, dw, dy, x, rows, Write::Assign); }),
          .adding_wgrad = timed.measure("wgrad, adding", [&] {
            kernels::grouped_linear_wgrad(stream, dw, dy, x, rows, Write::Accumulate);
          })};
}

}  // namespace weft::measure
