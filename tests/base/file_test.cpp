#include "weft/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "weft/base/error.h"

namespace weft::base {
namespace file_test {

namespace fs = std::filesystem;

class File : public ::testing::Test {
 protected:
  File() : dir_(fs::path(::testing::TempDir()) / "weft_file_test") { fs::create_directories(dir_); }
  ~File() override { fs::remove_all(dir_); }
  fs::path dir_;
};

TEST_F(File, WholeWriteLeavesNoTemporary) {
  write_whole(dir_ / "a", "hello");
  EXPECT_EQ(read_text(dir_ / "a"), "hello");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator{}), 1);
}

TEST_F(File, FailedWriteKeepsTheOldContent) {
  write_whole(dir_ / "a", "old");
  const auto failing = [](const Append& append) {
    append("new");
    throw SystemError("disk on fire");
  };
  EXPECT_THROW(write_whole(dir_ / "a", failing), SystemError);
  EXPECT_EQ(read_text(dir_ / "a"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator{}), 1);
}

TEST_F(File, ReadsAreBounded) {
  write_whole(dir_ / "a", "12345");
  EXPECT_THROW(read_text(dir_ / "a", 4), SystemError);
  EXPECT_THROW(read_text(dir_ / "missing"), SystemError);
  EXPECT_THROW(read_text(dir_), SystemError);
}

TEST_F(File, APipeIsRefusedWithoutWaitingForItsWriter) {
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(read_text(dir_ / "pipe"), SystemError);
  EXPECT_THROW(Mapping(dir_ / "pipe"), SystemError);
}

TEST_F(File, MappingOfAnEmptyFileIsEmpty) {
  write_whole(dir_ / "a", "");
  EXPECT_TRUE(Mapping(dir_ / "a").bytes().empty());
}

}  // namespace file_test
}  // namespace weft::base
