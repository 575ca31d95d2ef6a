// Any bytes as a recipe: read and applied, or rejected with ConfigError; what is accepted dumps to
// YAML that reads back to the same text.
#include <unistd.h>

#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/config/dump.h"
#include "weft/config/recipe.h"

namespace {

const std::filesystem::path& file() {
  static const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                            ("weft_fuzz_" + std::to_string(::getpid()) + ".yaml");
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace weft::config;
  std::string dumped;
  weft::base::write_whole(file(), std::string(reinterpret_cast<const char*>(data), size));
  try {
    dumped = to_yaml(resolve(file(), {}));
  } catch (const weft::base::ConfigError&) {
    return 0;
  }
  weft::base::write_whole(file(), dumped);
  if (to_yaml(resolve(file(), {})) != dumped) std::abort();
  std::filesystem::remove(file());
  return 0;
}
