#include "weft/base/files/pipe.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {
namespace pipe_test {

namespace fs = std::filesystem;

// Like a shell's <(...): both ends are open before the read.
std::string read_what(const std::string& written, std::size_t limit) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe(ends), 0);
  std::jthread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (std::size_t done = 0; done < written.size();) {
      done +=
          static_cast<std::size_t>(::write(ends[1], written.data() + done, written.size() - done));
    }
    ::close(ends[1]);
  });
  const std::string all = read_pipe(text("/dev/fd/{}", ends[0]), limit);
  writer.join();
  ::close(ends[0]);
  return all;
}

TEST(Pipe, IsReadToItsEnd) {
  const std::string long_text(100'000, 'x');
  EXPECT_EQ(read_what(long_text, long_text.size()), long_text);
}

TEST(Pipe, WithoutAWriterIsEmptyAndNotWaitedFor) {
  const fs::path path = fs::path(::testing::TempDir()) / text("weft_pipe_{}", ::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(is_pipe(path));
  EXPECT_EQ(read_pipe(path, 10), "");
  fs::remove(path);
  EXPECT_FALSE(is_pipe(fs::temp_directory_path()));
  EXPECT_FALSE(is_pipe("/no/such/file"));
}

TEST(Pipe, WithoutAnEndIsRefused) { EXPECT_THROW(read_pipe("/dev/zero", 1000), SystemError); }

}  // namespace pipe_test
}  // namespace weft::base
