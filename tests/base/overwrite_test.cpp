// User files, and files that a command wrote before.
#include "weft/base/files/overwrite.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/complaints_support.h"
#include "weft/base/files/file.h"
#include "weft/base/files/folder_path.h"
#include "weft/base/plain_text.h"
#include "weft/base/text.h"

namespace weft::base {
namespace overwrite_test {

namespace fs = std::filesystem;

TEST(Overwriting, AFileIsReplacedWithTheWordOrWhereTheSameCommandWroteIt) {
  const fs::path file = fs::path(::testing::TempDir()) / text("weft_overwrite_{}", ::getpid());
  const auto refusals = [&](Overwrite overwrite, std::string_view mark) {
    return complaints_of([&] { require_free(file, overwrite, mark); }).size();
  };
  EXPECT_EQ(refusals(Overwrite::No, ""), 0u);
  write_whole(file, "");
  EXPECT_EQ(refusals(Overwrite::No, ""), 0u) << "nothing is lost with an empty file";
  write_whole(file, "<svg><!-- drawn by weft --></svg>");
  EXPECT_EQ(refusals(Overwrite::No, ""), 1u);
  EXPECT_EQ(refusals(Overwrite::Yes, ""), 0u);
  EXPECT_EQ(refusals(Overwrite::No, "<!-- drawn by weft -->"), 0u);
  EXPECT_EQ(refusals(Overwrite::No, "<title>weft report"), 1u);
  EXPECT_EQ(refusals(Overwrite::Yes, "<title>weft report"), 0u);
  EXPECT_EQ(read_text(file), "<svg><!-- drawn by weft --></svg>");
  EXPECT_EQ(complaints_of([] { require_free("/dev/null", Overwrite::No); }).size(), 0u);
  fs::remove(file);
}

TEST(Overwriting, ANameThatNoFileCanHaveIsRefusedWithWhatIsThere) {
  const fs::path dir = fs::path(::testing::TempDir()) / text("weft_obstacle_{}", ::getpid());
  fs::create_directories(dir / "folder");
  write_whole(dir / "file", "mine");
  fs::create_symlink(dir / "nowhere", dir / "link");
  EXPECT_EQ(folder_obstacle(dir / "folder"), "");
  EXPECT_EQ(folder_obstacle(dir / "new/one"), "");
  EXPECT_EQ(folder_obstacle("new"), "");
  const std::string file = (dir / "file").string();
  EXPECT_EQ(folder_obstacle(file), text("'{}' is a file, not a folder: name another folder", file));
  EXPECT_EQ(folder_obstacle(file + "/"),
            text("'{}/' is a file, not a folder: name another folder", file));
  EXPECT_EQ(folder_obstacle(file + "/a/b"),
            text("'{0}/a/b' is below '{0}', which is a file: name another folder", file));
  EXPECT_NE(folder_obstacle(dir / "link").find("a link to nothing"), std::string::npos);
  EXPECT_NE(folder_obstacle("/dev/null").find("is no folder"), std::string::npos);
  for (const fs::path& path : {dir / "folder", dir / "file/page.html"}) {
    for (const Overwrite overwrite : {Overwrite::No, Overwrite::Yes}) {
      EXPECT_EQ(complaints_of([&] { require_free(path, overwrite); }).size(), 1u) << path;
    }
  }
  fs::remove_all(dir);
}

TEST(PlainText, IsUtf8WithoutNul) {
  for (const std::string_view text : {"",
                                      "plain\n",
                                      "Gr\xc3\xbc\xc3\x9f"
                                      "e",
                                      "\xe2\x82\xac",
                                      "cut \xe2\x82"}) {
    EXPECT_TRUE(is_plain_text(text)) << text;
  }
  using namespace std::string_view_literals;
  for (const std::string_view bytes : {"\0"sv, "a\0b"sv, "\xff\xfe"sv, "\xc3("sv, "\x80"sv}) {
    EXPECT_FALSE(is_plain_text(bytes));
  }
}

}  // namespace overwrite_test
}  // namespace weft::base
