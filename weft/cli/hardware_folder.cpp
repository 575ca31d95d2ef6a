#include "weft/cli/hardware_folder.h"

#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"

namespace weft::cli {

std::filesystem::path hardware_folder() {
  const char* chosen = std::getenv("WEFT_HARDWARE");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return recipes_folder().parent_path() / "hardware";
}

plan::Hardware chosen_hardware(const std::string& named, const config::HardwareConfig& hardware) {
  const std::filesystem::path folder = hardware_folder();
  if (!named.empty()) return plan::find_hardware(folder, named);
  if (hardware.gpu) {
    return plan::find_hardware(folder, std::string(config::word(*hardware.gpu)));
  }
  throw base::ConfigError(base::text("no GPU is named: give --gpu=NAME; known are {}",
                                     fmt::join(plan::known_hardware(folder), ", ")));
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
