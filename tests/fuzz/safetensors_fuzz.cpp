// Any bytes as a safetensors file: read or rejected with ConfigError. An accepted tensor lies
// inside the file.
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/checkpoint/tensors/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    for (const auto& [name, stored] :
         weft::checkpoint::parse_header(weft::checkpoint::bytes_of(file), size, "fuzz")) {
      if (stored.begin > stored.end || stored.end > size) std::abort();
      const weft::checkpoint::TensorView view{
          .where = name,
          .dtype = stored.dtype,
          .shape = stored.shape,
          .bytes = stored.end - stored.begin,
          .read =
              weft::checkpoint::bytes_of(file.subspan(stored.begin, stored.end - stored.begin))};
      std::vector<double> values(static_cast<std::size_t>(view.elements()));
      if (is_floating(view.dtype)) read_elements(view, 0, std::span<double>(values));
    }
  } catch (const weft::base::ConfigError&) {
  }
  return 0;
}
