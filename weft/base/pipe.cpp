#include "weft/base/pipe.h"

#include <fstream>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

namespace fs = std::filesystem;

bool is_pipe(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::is_fifo(status) || fs::is_character_file(status);
}

std::string read_pipe(const fs::path& path, std::size_t limit_bytes) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw_errno(text("cannot open '{}'", shown(path.string())));
  std::string all;
  char block[4096];
  while (stream.read(block, sizeof block), stream.gcount() > 0) {
    all.append(block, static_cast<std::size_t>(stream.gcount()));
    if (all.size() > limit_bytes) {
      throw SystemError(text("'{}' gives more than {} bytes", shown(path.string()), limit_bytes));
    }
  }
  return all;
}

}  // namespace weft::base
