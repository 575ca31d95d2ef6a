// Any bytes as a .npy file: read or rejected with ConfigError. An accepted array fills the file.
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/data/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const weft::data::NpyArray array = weft::data::parse_npy(file, size, "fuzz");
    if (array.rows * array.columns * bytes_of(array.type) != size - array.begin) std::abort();
  } catch (const weft::base::ConfigError&) {
  }
  return 0;
}
