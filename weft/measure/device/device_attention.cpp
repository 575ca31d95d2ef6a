#include "weft/measure/device/device_attention.h"

#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/kernels/kernels.h"

namespace weft::measure {

using base::text;
using tensor::DType;
using tensor::Tensor;

std::vector<AttentionCase> attention_cases() {
  const AttentionWork all{.batch = 4,
                          .sequence = 4096,
                          .heads = 32,
                          .groups = 32,
                          .head_width = 128,
                          .value_width = 128};
  AttentionWork grouped = all, latent = all;
  grouped.groups = 4;
  latent.head_width = 192;
  return {{.name = "32 key/value heads", .work = all},
          {.name = "4 key/value heads", .work = grouped},
          {.name = "latent, 192 and 128", .work = latent}};
}

AttentionRates bench_attention(DeviceTimer& timer,
                               const AttentionCase& attention,
                               const NoteOperation& note) {
  const AttentionWork& work = attention.work;
  const std::int64_t tokens = work.batch * work.sequence;
  const kernels::AttentionShape shape{
      .sequence = work.sequence,
      .heads = work.heads,
      .groups = work.groups,
      .head_width = work.head_width,
      .scale = static_cast<float>(1 / std::sqrt(base::number(work.head_width))),
      .value_width = work.value_width};
  const auto random = [&](std::int64_t width) {
    return timer.random(DType::BF16, {tokens, width});
  };
  const Tensor q = random(work.heads * work.head_width), k = random(work.groups * work.head_width);
  const Tensor v = random(work.groups * work.value_width);
  const Tensor gradient_o = random(work.heads * work.value_width);
  const Tensor o = timer.empty(DType::BF16, gradient_o.shape());
  const Tensor lse = timer.empty(DType::F32, {work.heads, tokens});
  const Tensor dq = timer.empty(DType::BF16, q.shape()), dk = timer.empty(DType::BF16, k.shape());
  const Tensor dv = timer.empty(DType::BF16, v.shape());
  const auto measure = [&](const char* direction, double flop, const auto& call) {
    const std::string name = text("{}, {}", attention.name, direction);
    note(name);
    return DeviceRate{.name = name,
                      .shape = text("{} x {}", work.batch, work.sequence),
                      .unit = WorkUnit::Flop,
                      .work = flop,
                      .seconds = timer.seconds_of(call)};
  };
  tensor::Stream& stream = timer.stream();
  tensor::Pool& pool = timer.pool();
  return {
      .forward = measure("forward",
                         work.forward_flop(),
                         [&] { kernels::attention_forward(stream, pool, o, lse, q, k, v, shape); }),
      .backward = measure("backward", work.backward_flop(), [&] {
        kernels::attention_dgrad(stream, pool, dq, dk, dv, gradient_o, o, lse, q, k, v, shape);
      })};
}

}  // namespace weft::measure
