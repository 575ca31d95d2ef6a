// Any bytes as a manifest with a valid checksum: read or rejected with ConfigError. An accepted one
// is written as it was read, and no name leads out of the folder.
#include <cstdlib>
#include <string>

#include "weft/base/crc32c.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace weft;
  const std::string content(reinterpret_cast<const char*>(data), size);
  try {
    const checkpoint::Manifest manifest = checkpoint::parse_manifest(
        base::text("{},\"crc32c\":{}}}\n", content, base::crc32c(content)),
        "fuzz");
    for (const checkpoint::StoredFile& file : manifest.files) {
      if (file.name.find('/') != std::string::npos || file.name.front() == '.') std::abort();
    }
    const std::string written = checkpoint::manifest_text(manifest);
    if (checkpoint::manifest_text(checkpoint::parse_manifest(written, "again")) != written) {
      std::abort();
    }
    checkpoint::uncovered_state(manifest);
  } catch (const base::ConfigError&) {
  }
  return 0;
}
