#include "weft/cli/run/picture_file.h"

#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace {

std::string mark_of(const std::string& command) {
  return base::text("<!-- drawn by `weft {}` -->", command);
}

}  // namespace

void require_picture(const std::filesystem::path& file,
                     base::Overwrite overwrite,
                     const std::string& command) {
  base::require_result(file, overwrite, mark_of(command));
}

void write_picture(const std::filesystem::path& file,
                   const std::string& svg,
                   const std::string& command) {
  base::write_whole(file, base::text("{}\n{}", mark_of(command), svg));
}

}  // namespace weft::cli
