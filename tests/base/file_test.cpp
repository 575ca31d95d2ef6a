#include "weft/base/files/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {
namespace file_test {

namespace fs = std::filesystem;

class File : public ::testing::Test {
 protected:
  File() : dir_(fs::path(::testing::TempDir()) / text("weft_file_test_{}", ::getpid())) {
    fs::create_directories(dir_);
  }
  ~File() override { fs::remove_all(dir_); }

  auto entries() const {
    return std::distance(fs::directory_iterator(dir_), fs::directory_iterator{});
  }
  static std::string complaint(const std::function<void()>& act) {
    try {
      act();
    } catch (const SystemError& error) {
      return error.what();
    }
    return "";
  }

  fs::path dir_;
};

TEST_F(File, WholeWriteLeavesNoTemporary) {
  write_whole(dir_ / "a", "hello");
  EXPECT_EQ(read_text(dir_ / "a"), "hello");
  EXPECT_EQ(entries(), 1);
}

TEST_F(File, FailedWriteKeepsTheOldContent) {
  write_whole(dir_ / "a", "old");
  const auto failing = [](const Append& append) {
    append("new");
    throw SystemError("disk on fire");
  };
  EXPECT_THROW(write_whole(dir_ / "a", failing), SystemError);
  EXPECT_EQ(read_text(dir_ / "a"), "old");
  EXPECT_EQ(entries(), 1);
}

TEST_F(File, APipeIsWrittenIntoAndStaysAPipe) {
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  const int reader = ::open((dir_ / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_whole(dir_ / "pipe", "hello");
  char got[8] = {};
  EXPECT_EQ(::read(reader, got, sizeof got), 5);
  EXPECT_STREQ(got, "hello");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(dir_ / "pipe"));
  EXPECT_EQ(entries(), 1);
}

TEST_F(File, ADeviceStaysADevice) {
  write_whole("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_NE(complaint([] { write_whole("/dev/full", "x"); }).find("No space left"),
            std::string::npos);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(File, AFolderIsNotReplaced) {
  fs::create_directories(dir_ / "empty");
  EXPECT_NE(complaint([&] { write_whole(dir_ / "empty", "x"); }).find("is a folder"),
            std::string::npos);
  EXPECT_NE(complaint([&] { require_writable(dir_ / "empty"); }).find("is a folder"),
            std::string::npos);
  EXPECT_TRUE(fs::is_directory(dir_ / "empty"));
}

TEST_F(File, SymbolicLinksAreFollowed) {
  write_whole(dir_ / "real", "old");
  fs::create_directories(dir_ / "in");
  fs::create_symlink("../real", dir_ / "in/link");
  fs::create_symlink("in/link", dir_ / "twice");
  write_whole(dir_ / "twice", "new");
  EXPECT_TRUE(fs::is_symlink(dir_ / "twice"));
  EXPECT_TRUE(fs::is_symlink(dir_ / "in/link"));
  EXPECT_EQ(read_text(dir_ / "real"), "new");
}

TEST_F(File, ALinkToNothingMakesItsTarget) {
  fs::create_symlink("later", dir_ / "link");
  write_whole(dir_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(dir_ / "link"));
  EXPECT_EQ(read_text(dir_ / "later"), "new");
  fs::create_symlink("round", dir_ / "round");
  EXPECT_THROW(write_whole(dir_ / "round", "x"), SystemError);
}

TEST_F(File, AReplacedFileKeepsItsPermissions) {
  write_whole(dir_ / "a", "old");
  fs::permissions(dir_ / "a", fs::perms::owner_read | fs::perms::owner_write);
  write_whole(dir_ / "a", "new");
  EXPECT_EQ(fs::status(dir_ / "a").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(File, TemporariesThatNobodyHoldsAreRemoved) {
  write_whole(dir_ / "a.4711.0.partial", "left by a process that was killed");
  write_whole(dir_ / "b.4711.0.partial", "of another file");
  write_whole(dir_ / "a.x.partial", "not one of ours");
  write_whole(dir_ / "a", "new");
  EXPECT_FALSE(fs::exists(dir_ / "a.4711.0.partial"));
  EXPECT_EQ(entries(), 3);
}

TEST_F(File, ATemporaryThatIsBeingWrittenIsLeftAlone) {
  write_whole(dir_ / "a", [&](const Append& append) {
    append("outer");
    write_whole(dir_ / "a", "inner");
    EXPECT_EQ(read_text(dir_ / "a"), "inner");
  });
  EXPECT_EQ(read_text(dir_ / "a"), "outer");
  EXPECT_EQ(entries(), 1);
}

TEST_F(File, ManyWritersOfOneFileLeaveOneWholeFile) {
  std::vector<std::thread> writers;
  for (char letter : std::string("abcd")) {
    writers.emplace_back([&, letter] {
      for (int i = 0; i < 20; ++i) write_whole(dir_ / "a", std::string(1000, letter));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string all = read_text(dir_ / "a");
  EXPECT_EQ(all, std::string(1000, all.front()));
  EXPECT_EQ(entries(), 1);
}

TEST_F(File, WhatCannotBeWrittenIsKnownBefore) {
  require_writable(dir_ / "a", 1000);
  EXPECT_EQ(entries(), 0);
  EXPECT_NE(complaint([&] { require_writable(dir_ / "no/a"); }).find("no/a"), std::string::npos);
  const std::string large =
      complaint([&] { require_writable(dir_ / "a", std::uint64_t{1} << 60); });
  EXPECT_NE(large.find("1152921504606846976 bytes"), std::string::npos) << large;
  require_writable("/dev/null", std::uint64_t{1} << 60);
}

TEST_F(File, ALimitOnTheSizeOfFilesIsAnErrorAndNotASignal) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);  // as weft does when it starts
  const std::string early = complaint([&] { require_writable(dir_ / "a", 2000); });
  const std::string late = complaint([&] { write_whole(dir_ / "a", std::string(2000, 'x')); });
  std::signal(SIGXFSZ, handler);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(early.find("ulimit -f"), std::string::npos) << early;
  EXPECT_NE(late.find("File too large"), std::string::npos) << late;
  EXPECT_EQ(entries(), 0);
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
  EXPECT_THROW(InputFile(dir_ / "pipe"), SystemError);
}

TEST_F(File, AFileCutWhileItIsReadIsAnErrorWithTheNumbers) {
  write_whole(dir_ / "a", "0123456789");
  const InputFile file(dir_ / "a");
  EXPECT_EQ(file.size(), 10u);
  std::vector<std::byte> out(4);
  file.read(6, out);
  EXPECT_EQ(static_cast<char>(out[0]), '6');
  fs::resize_file(dir_ / "a", 7);
  const std::string what = complaint([&] { file.read(6, out); });
  EXPECT_NE(what.find("ends at byte 7"), std::string::npos) << what;
  EXPECT_NE(what.find("it had 10 bytes"), std::string::npos) << what;
}

}  // namespace file_test
}  // namespace weft::base
