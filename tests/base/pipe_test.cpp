#include "weft/base/pipe.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {
namespace {

namespace fs = std::filesystem;

class Pipe : public ::testing::Test {
 protected:
  Pipe() : path_(fs::path(::testing::TempDir()) / text("weft_pipe_{}", ::getpid())) {
    ::mkfifo(path_.c_str(), 0600);
  }
  ~Pipe() override { fs::remove(path_); }

  std::string read_what(const std::string& written, std::size_t limit) {
    std::jthread writer([&] { std::ofstream(path_) << written; });
    return read_pipe(path_, limit);
  }

  const fs::path path_;
};

TEST_F(Pipe, IsReadToItsEnd) {
  EXPECT_TRUE(is_pipe(path_));
  const std::string long_text(100'000, 'x');
  EXPECT_EQ(read_what(long_text, long_text.size()), long_text);
  EXPECT_FALSE(is_pipe(fs::temp_directory_path()));
  EXPECT_FALSE(is_pipe("/no/such/file"));
}

TEST_F(Pipe, WithoutAnEndIsRefused) { EXPECT_THROW(read_pipe("/dev/zero", 1000), SystemError); }

}  // namespace
}  // namespace weft::base
