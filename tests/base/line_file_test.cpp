#include "weft/base/files/line_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::base {
namespace {

namespace fs = std::filesystem;

class Lines : public ::testing::Test {
 protected:
  Lines() : dir_(fs::path(::testing::TempDir()) / text("weft_line_test_{}", ::getpid())) {
    fs::create_directories(dir_);
  }
  ~Lines() override { fs::remove_all(dir_); }
  fs::path dir_;
};

TEST_F(Lines, GrowsByWholeLines) {
  write_whole(dir_ / "a", "of an earlier run\n");
  LineFile file(dir_ / "a", "in use");
  EXPECT_EQ(read_text(dir_ / "a"), "of an earlier run\n");
  file.clear();
  file.append("one");
  file.append("two");
  EXPECT_EQ(read_text(dir_ / "a"), "one\ntwo\n");
}

TEST_F(Lines, OneWriterAtATime) {
  {
    const LineFile first(dir_ / "a", "in use");
    EXPECT_THROW(LineFile(dir_ / "a", "in use"), SystemError);
  }
  LineFile(dir_ / "a", "in use").append("free again");
}

TEST_F(Lines, ALineThatDoesNotFitLeavesNothing) {
  LineFile file(dir_ / "a", "in use");
  file.append("first");
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 10;
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(file.append("second"), SystemError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_text(dir_ / "a"), "first\n");
  file.append("third");
  EXPECT_EQ(read_text(dir_ / "a"), "first\nthird\n");
}

TEST_F(Lines, DevicesAreWrittenIntoByAnyNumber) {
  LineFile first("/dev/null", "in use"), second("/dev/null", "in use");
  first.clear();
  second.append("gone");
  EXPECT_THROW(LineFile("/dev/full", "in use").append("x"), SystemError);
  EXPECT_THROW(LineFile(dir_, "in use"), SystemError);
}

}  // namespace
}  // namespace weft::base
