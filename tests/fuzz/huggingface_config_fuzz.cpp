// Any bytes as a config.json: read or rejected with ConfigError. An accepted one can be written and
// read again to equal text.
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/checkpoint/huggingface/huggingface_config.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace weft::checkpoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  HuggingFaceConfig config;
  std::string written;
  try {
    config = parse_huggingface_config(text, "fuzz");
    written = huggingface_config_text(config);
  } catch (const weft::base::ConfigError&) {
    return 0;
  }
  if (huggingface_config_text(parse_huggingface_config(written, "fuzz")) != written) std::abort();
  return 0;
}
