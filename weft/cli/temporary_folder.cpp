#include "weft/cli/temporary_folder.h"

#include <cstdlib>

#include "weft/base/error.h"

namespace weft::cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "weft-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) base::throw_errno("cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace weft::cli
