#include "weft/rules/advice/facts.h"

#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/derive/pipeline.h"

namespace weft::rules {

using namespace config;
namespace {

bool has_rack_domain(std::optional<Gpu> gpu) {
  return gpu == Gpu::Gb200 || gpu == Gpu::Gb300 || gpu == Gpu::Vr200 || gpu == Gpu::R100;
}

}  // namespace

RunFacts facts_of(const Config& config) {
  const grid::Layout layout = derive::layout_of(config);
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  const std::int64_t machine = derive::is_on_gpu(config)
                                   ? derive::gpu_facts(config.hardware).gpus_per_node
                                   : config.runtime.ranks_per_node.value_or(layout.world);
  return {.tp = layout.tp,
          .pp = layout.pp,
          .vpp = derive::virtual_stages(config.model),
          .ep = layout.ep,
          .etp = layout.etp,
          .micro_batches = derive::micro_batches(config.train, dp),
          .machines = (layout.world + machine - 1) / machine,
          .domain = has_rack_domain(config.hardware.gpu) ? kRackDomain : machine};
}

bool is_blackwell(const Config& config) {
  return derive::is_blackwell(derive::gpu_facts(config.hardware));
}

}  // namespace weft::rules
