#include "weft/plan/hardware/run_hardware.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/machines.h"
#include "weft/rules/missing.h"

namespace weft::plan {
namespace {

constexpr double kGigabyte = 1e9;

bool is_of_one_process(const config::RuntimeConfig& runtime) {
  return runtime.backend == config::CommBackend::Threads ||
         runtime.backend == config::CommBackend::Loopback;
}

bool is_of_this_build(const config::Config& config) {
  const std::vector<rules::Missing> missing = rules::missing_parts(config);
  return std::ranges::all_of(missing, [](const rules::Missing& each) {
    return each.part == rules::kNoGpu || each.part == rules::kNoRoom;
  });
}

// Links of one rank alone on a GPU. Rows for peers are copied in its memory beside emulated links
// of the given rate, or pass through host memory.
void emulate_links(const config::Config& config, Hardware& hardware) {
  const config::FabricConfig& fabric = config.fabric;
  const double copied = hardware.memory_rate() / kGigabyte / 2;
  const bool is_emulated = !derive::fabric_of(config).is_free();
  const auto rate = [&](double wire) {
    if (!is_emulated) return hardware.host_link_rate() / kGigabyte;
    return wire > 0 ? std::min(wire, copied) : copied;
  };
  hardware.nvlink_gbps = rate(fabric.intra_node_gb_per_second);
  hardware.nic_gbps = rate(fabric.inter_node_gb_per_second);
  hardware.nvlink_share = hardware.exchange_share = hardware.nic_share = 1;
  hardware.nvlink_latency_us = fabric.intra_node_latency_us;
  hardware.nic_latency_us = fabric.inter_node_latency_us;
  const auto world = static_cast<double>(derive::layout_of(config).world);
  const auto together = config.runtime.ranks_per_node;
  hardware.nvlink_domain = together ? static_cast<double>(*together) : world;
  hardware.gpus_per_node = hardware.nvlink_domain;
}

}  // namespace

Program usual_program(const config::Config& config, const Hardware& hardware) {
  const bool is_trained = config.runtime.device == config::DeviceKind::Cuda &&
                          is_of_one_process(config.runtime) && is_of_this_build(config);
  return is_trained && has_rates_of(hardware, Program::Weft) ? Program::Weft : hardware.program;
}

Hardware hardware_of_run(const config::Config& config,
                         const Hardware& hardware,
                         std::optional<Program> asked) {
  Hardware run = as_run_by(hardware, asked.value_or(usual_program(config, hardware)));
  const bool is_alone = config.runtime.backend == config::CommBackend::Loopback;
  if (is_alone && run.device == config::DeviceKind::Cuda && run.program == Program::Weft) {
    emulate_links(config, run);
  }
  return run;
}

std::string program_text(const Hardware& hardware) {
  return base::text("priced as {} runs it", name_of(hardware.program));
}

}  // namespace weft::plan
