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

}  // namespace weft::cli
