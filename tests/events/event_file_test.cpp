#include "weft/events/event_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <limits>

#include "tests/events/event_reader_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/random.h"
#include "weft/base/text.h"

namespace weft::events {
namespace event_file_test {

namespace fs = std::filesystem;

class EventFiles : public ::testing::Test {
 protected:
  EventFiles() : dir_(fs::path(::testing::TempDir()) / base::text("weft_events_{}", ::getpid())) {
    fs::create_directories(dir_);
  }
  ~EventFiles() override { fs::remove_all(dir_); }
  void SetUp() override {
    if (protobuf_version().empty()) GTEST_SKIP() << "skipped: this build has no protobuf";
  }

  // Writes steps [first, last] of a run with eight sequences per step.
  static void put_steps(EventFile& file, std::int64_t first, std::int64_t last, double value) {
    for (std::int64_t step = first; step <= last; ++step) {
      const std::vector<Event> events{
          {.seconds = 2e9, .step = step, .scalars = {{"loss", value}}},
          {.seconds = 2e9, .step = 8 * step, .scalars = {{"loss vs samples", value}}}};
      file.append(events);
    }
  }

  fs::path dir_;
};

TEST_F(EventFiles, AnotherReaderSeesWhatWasWritten) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  EventFile file(dir_, 0);
  const std::vector<Event> events{
      {.seconds = 1.75e9,
       .step = 1LL << 40,
       .scalars = {{"zero", 0}, {"small", -1e-30}, {"none", std::nan("")}, {"large", kInfinite}}}};
  file.append(events);
  const std::vector<SeenEvent> seen = see_events(base::read_text(file.path()));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].file_version, "brain.Event:2");
  EXPECT_EQ(seen[1].seconds, 1.75e9);
  EXPECT_EQ(seen[1].step, 1LL << 40);
  ASSERT_EQ(seen[1].scalars.size(), 4u);
  EXPECT_EQ(seen[1].scalars[0].tag, "zero");
  EXPECT_EQ(seen[1].scalars[0].value, 0);
  EXPECT_EQ(seen[1].scalars[1].value, -1e-30f);
  EXPECT_TRUE(std::isnan(seen[1].scalars[2].value));
  EXPECT_TRUE(std::isinf(seen[1].scalars[3].value));
}

// Every event file of TensorFlow and PyTorch begins with these bytes: 24, its masked checksum, and
// the key of the time.
TEST_F(EventFiles, BeginsAsThoseOfOtherPrograms) {
  const EventFile file(dir_, 0);
  EXPECT_EQ(base::read_text(file.path()).substr(0, 13),
            std::string("\x18\0\0\0\0\0\0\0\xa3\x7fK\"\t", 13));
  EXPECT_TRUE(file.path().filename().string().starts_with("events.out.tfevents.1") ||
              file.path().filename().string().starts_with("events.out.tfevents.2"))
      << file.path();
}

TEST_F(EventFiles, ARunThatGoesOnLeavesNoStepTwice) {
  {
    EventFile first(dir_, 0);
    put_steps(first, 1, 7, 1);
  }
  {
    EventFile second(dir_, 4);
    put_steps(second, 5, 6, 2);
  }
  EventFile third(dir_, 5);
  put_steps(third, 6, 9, 3);
  const std::map<std::int64_t, float>
      expected{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 2}, {6, 3}, {7, 3}, {8, 3}, {9, 3}};
  const Curves curves = see_curves(dir_);
  EXPECT_EQ(curves.at("loss"), expected);
  EXPECT_EQ(curves.at("loss vs samples").size(), 9u);
  EXPECT_EQ(curves.at("loss vs samples").at(40), 2);
  const std::vector<fs::path> files = event_files(dir_);
  ASSERT_EQ(files.size(), 3u) << "all of one second";
  EXPECT_EQ(files.back(), third.path()) << "read in the order of the names";
}

TEST_F(EventFiles, ARunThatStartsAnewReplacesItsOwnFilesAndNoOthers) {
  base::write_whole(dir_ / "events.out.tfevents.1.host.1", "another program's");
  {
    EventFile first(dir_, 0);
    put_steps(first, 1, 3, 1);
  }
  fs::create_symlink("events.out.tfevents.1.host.1", dir_ / "events.out.tfevents.2.a.weft");
  const EventFile second(dir_, 0);
  EXPECT_EQ(event_files(dir_).size(), 3u);
  EXPECT_EQ(base::read_text(dir_ / "events.out.tfevents.1.host.1"), "another program's");
}

TEST_F(EventFiles, ASecondRunInTheFolderIsRefusedAndHarmsNothing) {
  EventFile first(dir_, 0);
  put_steps(first, 1, 3, 1);
  EXPECT_THROW(EventFile(dir_, 0), base::SystemError);
  EXPECT_EQ(see_curves(dir_).at("loss").size(), 3u);
}

TEST_F(EventFiles, WhatIsDamagedIsCutAndTheRestStays) {
  fs::path path;
  {
    EventFile first(dir_, 0);
    put_steps(first, 1, 20, 1);
    path = first.path();
  }
  const std::string whole = base::read_text(path);
  const std::uint64_t key = base::hash("damage");
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::string bytes = whole;
    const std::size_t at = base::philox(key, i, 0)[0] % bytes.size();
    bytes[at] = static_cast<char>(base::philox(key, i, 1)[0]);
    if (i % 3 == 0) bytes.resize(at);
    std::ofstream(path, std::ios::binary) << bytes;
    const EventFile next(dir_, 10);
    const Curves curves = see_curves(dir_);
    const auto loss = curves.find("loss");
    EXPECT_TRUE(loss == curves.end() || loss->second.rbegin()->first <= 10) << i;
    fs::remove(next.path());
  }
}

TEST_F(EventFiles, AWriteThatDoesNotFitLeavesNothing) {
  EventFile file(dir_, 0);
  put_steps(file, 1, 1, 1);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = fs::file_size(file.path()) + 20;
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(put_steps(file, 2, 2, 1), base::SystemError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  put_steps(file, 3, 3, 1);
  EXPECT_EQ(see_curves(dir_).at("loss").size(), 2u);
}

}  // namespace event_file_test
}  // namespace weft::events
