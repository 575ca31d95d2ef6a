#include "weft/cli/run/temporary_folder.h"

#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() : TemporaryFolder(fs::temp_directory_path()) {}

TemporaryFolder::TemporaryFolder(const fs::path& in) {
  std::string pattern = (in / "weft-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    base::throw_errno(base::text("cannot make a temporary folder in '{}'", in.string()));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace weft::cli
