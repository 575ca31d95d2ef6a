#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/meta/repository_support.h"
#include "tests/meta/shell_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::meta {
namespace format_test {

// clang-format of the required version (others break lines differently). Empty: none found.
std::string find_formatter() {
  for (const char* name : {"clang-format-14", "clang-format"}) {
    const Ran version = shell(std::string(name) + " --version");
    if (version.code == 0 && version.said.find("version 14.") != std::string::npos) return name;
  }
  return {};
}

constexpr const char* kSkipped =
    "SKIPPED: no clang-format 14 in PATH, so formatting was NOT checked (Debian: clang-format-14)";

// Changes that the formatter would make in these files; empty: none.
std::string format_complaints(const std::string& formatter, const std::string& paths) {
  const Ran ran =
      shell("cd '" WEFT_SOURCE_DIR "' && " + formatter +
            " --style=file:'" WEFT_SOURCE_DIR "/.clang-format' --dry-run -Werror " + paths);
  return ran.code == 0 ? std::string() : ran.said;
}

std::string complaints_about_text(const std::string& formatter, const std::string& text) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / base::text("weft_format_{}.cpp", ::getpid());
  base::write_whole(file, text);
  const std::string complaints = format_complaints(formatter, base::text("'{}'", file.string()));
  std::filesystem::remove(file);
  return complaints;
}

TEST(Format, ABadlyFormattedTextIsRejected) {
  const std::string formatter = find_formatter();
  if (formatter.empty()) GTEST_SKIP() << kSkipped;
  EXPECT_EQ(complaints_about_text(formatter, "int f(int a) { return a; }\n"), "");
  EXPECT_NE(complaints_about_text(formatter, "int f( int a ){return a;}\n"), "");
}

// `make test` looks at what changed since the branch that this one follows, CI at all files.
TEST(Format, EverySourceIsFormatted) {
  const std::string formatter = find_formatter();
  if (formatter.empty()) GTEST_SKIP() << kSkipped;
  const auto changed = changed_files();
  std::string paths;
  std::size_t count = 0;
  for (const char* folder : {"weft", "tests", "bench"}) {
    for (const TextFile& file : files_below(folder, {".h", ".cpp", ".cu", ".cuh"})) {
      ++count;
      if (!changed || changed->contains(file.path)) paths += " '" + file.path + "'";
    }
  }
  ASSERT_GT(count, 200u);
  const std::string complaints = paths.empty() ? "" : format_complaints(formatter, paths);
  EXPECT_EQ(complaints, "") << "make format";
}

}  // namespace format_test
}  // namespace weft::meta
