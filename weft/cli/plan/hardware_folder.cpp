#include "weft/cli/plan/hardware_folder.h"

#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/output.h"
#include "weft/config/codec.h"
#include "weft/derive/gpu.h"
#include "weft/kernels/device.h"
#include "weft/plan/cost/workload.h"

namespace weft::cli {

std::filesystem::path hardware_folder() {
  const char* chosen = std::getenv("WEFT_HARDWARE");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return recipes_folder().parent_path() / "hardware";
}

std::optional<plan::Hardware> hardware_of_card(const std::string& card) {
  const std::filesystem::path folder = hardware_folder();
  for (const std::string& name : plan::known_hardware(folder)) {
    config::HardwareConfig named;
    named.gpu = config::WordCodec<config::Gpu>::parse(name);
    if (named.gpu && derive::gpu_facts(named).name == card) {
      return plan::find_hardware(folder, name);
    }
  }
  return std::nullopt;
}

void name_card(config::Config& config) {
  const bool is_named = config.hardware.gpu || !config.hardware.device_name.empty();
  if (is_named || config.runtime.device != config::DeviceKind::Cuda) return;
  const kernels::GpuReport report = kernels::gpu_report();
  if (report.gpus.empty()) return;
  const std::optional<plan::Hardware> card = hardware_of_card(report.gpus.front().name);
  if (!card) return;
  config.hardware.gpu = config::WordCodec<config::Gpu>::parse(card->name);
  print_warning(base::text("hardware.gpu={} is taken: the card of this machine", card->name));
}

plan::Hardware chosen_hardware(const std::string& named, const config::Config& config) {
  const std::filesystem::path folder = hardware_folder();
  if (!named.empty()) return plan::find_hardware(folder, named);
  if (config.hardware.gpu) {
    return plan::find_hardware(folder, std::string(config::word(*config.hardware.gpu)));
  }
  const std::string& card = config.hardware.device_name;
  if (!card.empty()) {
    if (std::optional<plan::Hardware> found = hardware_of_card(card)) return *found;
  }
  std::string why = "no GPU is named";
  if (!card.empty()) {
    why = base::text("no hardware file is of hardware.device_name = {}", base::shown(card));
  } else if (config.runtime.device == config::DeviceKind::Cuda) {
    const kernels::GpuReport report = kernels::gpu_report();
    if (!report.gpus.empty()) {
      const std::string here = report.gpus.front().name;
      if (std::optional<plan::Hardware> found = hardware_of_card(here)) return *found;
      why = base::text("no GPU is named, and no hardware file is of this machine's {}",
                       base::shown(here));
    } else {
      why = "runtime.device = cuda, no GPU is named, and this machine shows none";
    }
  }
  throw base::ConfigError(base::text("{}: give --gpu=NAME, or hardware.gpu=NAME; known are {}",
                                     why,
                                     fmt::join(plan::known_hardware(folder), ", ")));
}

void require_products(const config::Config& config, const plan::Hardware& hardware) {
  const base::DType number = plan::number_of(config.model);
  if (hardware.peak(number) > 0) return;
  throw base::ConfigError(base::text(
      "{} has no matrix products in {}{}: use another precision or another GPU, as in --gpu=gb200",
      hardware.name,
      name_of(number),
      hardware.program == plan::Program::Weft ? " under Weft" : ""));
}

void require_threads(const config::Config& config, const plan::Hardware& hardware) {
  const bool is_cpu = hardware.device == config::DeviceKind::Cpu;
  const auto threads = static_cast<std::int64_t>(hardware.sms);
  if (!is_cpu || config.runtime.threads_per_rank == threads) return;
  throw base::ConfigError(base::text(
      "{} is of ranks with {}, and runtime.threads_per_rank = {}: weft calibrate --hardware with "
      "runtime.threads_per_rank={} makes one of such ranks",
      hardware.name,
      base::counted(threads, "thread"),
      config.runtime.threads_per_rank,
      config.runtime.threads_per_rank));
}

}  // namespace weft::cli
