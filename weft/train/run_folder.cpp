#include "weft/train/run_folder.h"

#include <fmt/chrono.h>

#include <ctime>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/text.h"
#include "weft/config/dump.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

fs::path fresh_folder(const std::string& name) {
  const std::string stem = base::text("{}-{:%Y%m%d-%H%M%S}",
                                      name.empty() ? "run" : name,
                                      fmt::localtime(std::time(nullptr)));
  fs::path folder = fs::path("runs") / stem;
  for (int i = 2; fs::exists(folder); ++i) folder = fs::path("runs") / base::text("{}-{}", stem, i);
  return folder;
}

}  // namespace

fs::path make_run_folder(const config::Config& config, const std::string& name) {
  const fs::path folder =
      config.runtime.run_dir.empty() ? fresh_folder(name) : fs::path(config.runtime.run_dir);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw base::SystemError(
        base::text("cannot make the run folder '{}': {}", folder.string(), error.message()));
  }
  base::write_whole(folder / "config.yaml", config::to_yaml(config));
  return folder;
}

}  // namespace weft::train
