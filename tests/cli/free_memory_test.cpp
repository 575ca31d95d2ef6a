#include "weft/cli/run/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace free_memory_test {

namespace fs = std::filesystem;

// System files of a made-up machine.
class FreeMemory : public testing::Test {
 protected:
  ~FreeMemory() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& content) const {
    fs::create_directories((root_ / path).parent_path());
    base::write_whole(root_ / path, content);
  }

  const fs::path root_ = fs::temp_directory_path() / base::text("weft_free_memory_{}", ::getpid());
};

TEST_F(FreeMemory, IsWhatTheSystemSaysIsAvailable) {
  EXPECT_EQ(free_memory_bytes(root_), std::nullopt);
  write("proc/meminfo", "MemTotal:  9000 kB\nMemFree: 10 kB\nMemAvailable:  5000 kB\n");
  EXPECT_EQ(free_memory_bytes(root_), 5000 * 1024);
}

TEST_F(FreeMemory, KeepsTheLimitOfTheProcesssGroupAndOfThoseAboveIt) {
  write("proc/meminfo", "MemAvailable:  5000 kB\n");
  write("proc/self/cgroup", "0::/user.slice/job\n");
  write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  write("sys/fs/cgroup/user.slice/job/memory.current", "100\n");
  EXPECT_EQ(free_memory_bytes(root_), 5000 * 1024);
  write("sys/fs/cgroup/user.slice/memory.max", "3000\n");
  write("sys/fs/cgroup/user.slice/memory.current", "1000\n");
  EXPECT_EQ(free_memory_bytes(root_), 2000);
  write("sys/fs/cgroup/user.slice/memory.stat", "anon 700\ninactive_file 300\n");
  EXPECT_EQ(free_memory_bytes(root_), 2300) << "files in memory that nobody wants are free";
  write("sys/fs/cgroup/user.slice/memory.stat", "anon 300\nactive_file 400\ninactive_file 300\n");
  EXPECT_EQ(free_memory_bytes(root_), 2700) << "and those that were read again";
  write("sys/fs/cgroup/user.slice/memory.current", "9000\n");
  EXPECT_EQ(free_memory_bytes(root_), 0);
}

TEST_F(FreeMemory, ReadsTheFirstVersionOfControlGroupsToo) {
  write("proc/meminfo", "MemAvailable:  5000 kB\n");
  write("proc/self/cgroup", "5:devices:/\n4:cpu,memory:/docker/ab\n0::/\n");
  write("sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "4000\n");
  write("sys/fs/cgroup/memory/docker/ab/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(free_memory_bytes(root_), 3000);
  write("sys/fs/cgroup/memory/docker/ab/memory.stat", "total_inactive_file 50\n");
  EXPECT_EQ(free_memory_bytes(root_), 3050);
  write("sys/fs/cgroup/memory/docker/ab/memory.stat",
        "active_file 1\ntotal_inactive_file 50\ntotal_active_file 30\n");
  EXPECT_EQ(free_memory_bytes(root_), 3080);
}

// In a container the group's path is not below the folder: the folder is the group.
TEST_F(FreeMemory, ReadsTheLimitOfAContainer) {
  write("proc/meminfo", "MemAvailable:  5000 kB\n");
  write("proc/self/cgroup", "0::/not/to/be/seen\n");
  write("sys/fs/cgroup/memory.max", "4000\n");
  write("sys/fs/cgroup/memory.current", "1500\n");
  EXPECT_EQ(free_memory_bytes(root_), 2500);
}

TEST(FreeMemoryHere, IsKnown) {
  const std::optional<std::int64_t> bytes = free_memory_bytes();
  ASSERT_TRUE(bytes);
  EXPECT_GT(*bytes, 0);
  EXPECT_LT(*bytes, std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE));
}

}  // namespace free_memory_test
}  // namespace weft::cli
