// Any bytes as a recipe: read and applied, or rejected with ConfigError. An accepted one dumps to
// YAML that reads back to equal text.
#include <unistd.h>

#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/config/dump.h"
#include "weft/words/recipe.h"

namespace {

const std::filesystem::path& file() {
  static const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                            ("weft_fuzz_" + std::to_string(::getpid()) + ".yaml");
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace weft;
  std::string dumped;
  weft::base::write_whole(file(), std::string(reinterpret_cast<const char*>(data), size));
  try {
    dumped = config::to_yaml(words::load_config(file()));
  } catch (const weft::base::ConfigError&) {
    return 0;
  }
  weft::base::write_whole(file(), dumped);
  if (config::to_yaml(words::load_config(file())) != dumped) std::abort();
  std::filesystem::remove(file());
  return 0;
}
