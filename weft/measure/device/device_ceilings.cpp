#include "weft/measure/device/device_ceilings.h"

#include "weft/base/casts.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/pool.h"

namespace weft::measure {
namespace {

using base::number;
using tensor::DType;
using tensor::Shape;
using tensor::Tag;
using tensor::Tensor;

constexpr int kTransfers = 10, kRounds = 3;

// Rate of concurrent uploads and downloads by the host's clock, since no stream's clock sees the
// other stream. The pool is local: its memory must not outlive the streams that used it.
double rate_both_ways(tensor::Device& rank_device, const Shape& link) {
  tensor::Pool pool(rank_device);
  const auto up = rank_device.make_stream("up", tensor::StreamRole::Communication);
  const auto down = rank_device.make_stream("down", tensor::StreamRole::Communication);
  const Tensor host = Tensor::host_visible(pool, DType::F32, link, Tag::Workspace);
  const Tensor device(pool, DType::F32, link, Tag::Workspace);
  kernels::zero(*up, device);
  kernels::copy(*up, host, device);
  up->synchronize();
  const std::int64_t half = host.elements() / 2;
  const auto part = [&](const Tensor& t, int i) { return t.range(i * half, Shape{half}); };
  const Samples seconds = samples_of({.rounds = kRounds}, [&] {
    for (int i = 0; i < kTransfers; ++i) {
      kernels::copy(*up, part(device, 0), part(host, 0));
      kernels::copy(*down, part(host, 1), part(device, 1));
    }
    up->synchronize();
    down->synchronize();
  });
  return kTransfers * number(half) * 4 / seconds.median();
}

double fill_rate(DeviceTimer& timer, std::int64_t bytes) {
  const Tensor to = timer.empty(DType::F32, {bytes / 4});
  return number(to.bytes()) / timer.seconds_of([&] { kernels::zero(timer.stream(), to); });
}

}  // namespace

double product_rate(DeviceTimer& timer, DType dtype, const ProductSize& size) {
  const Tensor x = timer.random(dtype, {size.rows, size.k}),
               w = timer.random(dtype, {size.n, size.k});
  const Tensor y = timer.empty(dtype, {size.rows, size.n});
  const double seconds =
      timer.seconds_of([&] { kernels::linear_forward(timer.stream(), y, x, w); });
  return product_flop(number(size.rows), number(size.n), number(size.k)) / seconds;
}

double copy_rate(DeviceTimer& timer, std::int64_t bytes) {
  const Tensor from = timer.zeros(DType::F32, {bytes / 4}),
               to = timer.empty(DType::F32, {bytes / 4});
  const double seconds = timer.seconds_of([&] { kernels::copy(timer.stream(), to, from); });
  return 2 * number(to.bytes()) / seconds;
}

DeviceCeilings bench_ceilings(DeviceTimer& timer, const CeilingShapes& shapes) {
  DeviceCeilings ceilings;
  const ProductSize square{shapes.product, shapes.product, shapes.product};
  ceilings.flops = product_rate(timer, DType::BF16, square);
  ceilings.copy = copy_rate(timer, shapes.copy_bytes);
  ceilings.fill = fill_rate(timer, shapes.copy_bytes);
  const Shape link{shapes.link_bytes / 4};
  const Tensor host = Tensor::host_visible(timer.pool(), DType::F32, link, Tag::Workspace);
  const Tensor device = timer.zeros(DType::F32, link);
  kernels::copy(timer.stream(), host, device);
  const auto rate = [&](const Tensor& to, const Tensor& from) {
    return number(to.bytes()) / timer.seconds_of([&] { kernels::copy(timer.stream(), to, from); });
  };
  ceilings.upload = rate(device, host);
  ceilings.download = rate(host, device);
  ceilings.both = rate_both_ways(timer.device(), link);
  return ceilings;
}

}  // namespace weft::measure
