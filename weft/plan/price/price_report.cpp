// Price as text and JSON.
#include "weft/base/text.h"
#include "weft/plan/cost/time_text.h"
#include "weft/plan/memory/memory_text.h"
#include "weft/plan/price/price.h"

namespace weft::plan {
namespace {

using base::text;

std::string exposed_text(const ExposedMs& exposed, double step_ms) {
  std::string result;
  const auto add_kind = [&](std::string_view kind, double ms) {
    if (ms < 1e-3 * step_ms) return;
    result += text("{}{} {} ({:.1f} %)",
                   result.empty() ? "" : ", ",
                   kind,
                   time_text(ms),
                   ms / step_ms * 100);
  };
  add_kind("ep", exposed.ep);
  add_kind("dp", exposed.dp);
  add_kind("tp", exposed.tp);
  add_kind("pp", exposed.pp);
  add_kind("cp", exposed.cp);
  add_kind("copy", exposed.copy);
  add_kind("host", exposed.host);
  add_kind("update", exposed.update);
  return result.empty() ? "nothing" : result;
}

}  // namespace

std::string wall_text(Wall wall) {
  if (wall == Wall::Host) return "host (the GPU waits for launches)";
  if (wall == Wall::Update) return "update (the GPU waits for optimizer state on the host)";
  return std::string(word(wall));
}

base::Json to_json(const MemoryPrice& memory) {
  return {{"pp_rank", memory.pp_rank},
          {"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"activations", memory.activations},
          {"logits", memory.logits},
          {"buffers", memory.buffers},
          {"graphs", memory.graphs},
          {"reserved", memory.reserved},
          {"total", memory.total()},
          {"capacity", memory.capacity},
          {"host", memory.host},
          {"host_capacity", memory.host_capacity},
          {"fits", memory.fits()}};
}

base::Json to_json(const Price& price) {
  const ExposedMs& exposed = price.exposed;
  const ComputeMs& compute = price.compute;
  return {{"step_ms", price.step_ms},
          {"tokens_per_second_per_gpu", price.tokens_per_second_per_gpu},
          {"tflops_per_gpu", price.tflops_per_gpu},
          {"mfu", price.mfu},
          {"bubble", price.bubble},
          {"exposed",
           {{"ep", exposed.ep},
            {"dp", exposed.dp},
            {"tp", exposed.tp},
            {"pp", exposed.pp},
            {"cp", exposed.cp},
            {"copy", exposed.copy},
            {"host", exposed.host},
            {"update", exposed.update}}},
          {"compute",
           {{"products", compute.products},
            {"attention", compute.attention},
            {"memory", compute.memory},
            {"optimizer", compute.optimizer}}},
          {"memory_bytes", to_json(price.memory)},
          {"wall", word(price.wall)}};
}

std::string to_text(const Price& price) {
  const ComputeMs& compute = price.compute;
  const MemoryPrice& memory = price.memory;
  std::string result =
      text("step        {}, {} tokens/s/GPU, {} TFLOP/s/GPU, {:.1f} % of the peak\n",
           time_text(price.step_ms),
           rate_text(price.tokens_per_second_per_gpu),
           rate_text(price.tflops_per_gpu),
           price.mfu * 100);
  result += text("compute     {}: products {}, attention {}, memory-bound {}, optimizer {}\n",
                 time_text(compute.total()),
                 time_text(compute.products),
                 time_text(compute.attention),
                 time_text(compute.memory),
                 time_text(compute.optimizer));
  result += text("exposed     {}\n", exposed_text(price.exposed, price.step_ms));
  result += text("bubble      {:.1f} % of the step\n", price.bubble * 100);
  result += text(
      "memory      {:.1f} of {:.1f} GiB on pipeline rank {}: weights {:.1f}, gradients "
      "{:.1f}, optimizer {:.1f}, activations {:.1f}, logits {:.1f}, buffers {:.1f}, "
      "CUDA graphs {:.1f}, reserved {:.1f}{}\n",
      memory.total() / kGib,
      memory.capacity / kGib,
      memory.pp_rank,
      memory.weights / kGib,
      memory.gradients / kGib,
      memory.optimizer / kGib,
      memory.activations / kGib,
      memory.logits / kGib,
      memory.buffers / kGib,
      memory.graphs / kGib,
      memory.reserved / kGib,
      memory.total() <= memory.capacity ? "" : "; it does not fit");
  if (memory.host > 0) {
    result += text("host memory {:.1f} of {:.0f} GiB: what is offloaded{}\n",
                   memory.host / kGib,
                   memory.host_capacity / kGib,
                   memory.fits_host() ? "" : "; it does not fit");
  }
  result += text("wall        {}\n", wall_text(price.wall));
  return result;
}

}  // namespace weft::plan
