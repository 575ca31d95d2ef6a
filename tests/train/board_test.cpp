#include "weft/train/log/board.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/devices/devices_support.h"
#include "tests/events/event_reader_support.h"
#include "tests/train/train_support.h"
#include "weft/base/text.h"

namespace weft::train {
namespace board_test {

namespace fs = std::filesystem;

class Boards : public ::testing::Test {
 protected:
  Boards() : dir_(fs::path(::testing::TempDir()) / base::text("weft_board_{}", ::getpid())) {}
  ~Boards() override { fs::remove_all(dir_); }
  void SetUp() override {
    if (events::protobuf_version().empty()) GTEST_SKIP() << "skipped: this build has no protobuf";
  }

  TrainRequest request() {
    config::Config config = small_config();
    config.logger.tensorboard_dir = dir_.string();
    return {.config = judged(config),
            .log = [this](const std::string& line) { log_.push_back(line); }};
  }

  fs::path dir_;
  std::vector<std::string> log_;
};

void keep_steps(Board& board, std::int64_t first, std::int64_t last) {
  const auto device = devices::make_device(devices::DeviceKind::Cpu);
  const tensor::Pool pool(*device);
  for (std::int64_t step = first; step <= last; ++step) {
    board.keep({.iteration = step, .consumed_samples = 8 * step, .loss = 2}, pool);
  }
}

TEST_F(Boards, AStepThatIsDoneAgainIsShownOnce) {
  const TrainRequest run = request();
  Board board(run, 0);
  keep_steps(board, 1, 5);
  board.go_back(3);
  keep_steps(board, 4, 6);
  EXPECT_EQ(events::see_curves(dir_).at("lm loss").size(), 6u);
  EXPECT_EQ(events::see_curves(dir_).at("lm loss vs samples").size(), 6u);
  EXPECT_EQ(board.failure(), "");
}

TEST_F(Boards, AFolderThatIsGoneEndsNoRun) {
  const TrainRequest run = request();
  Board board(run, 0);
  keep_steps(board, 1, 2);
  fs::remove_all(dir_);
  std::ofstream(dir_) << "a file in its place";
  board.go_back(1);
  keep_steps(board, 2, 3);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("warning: logger.tensorboard_dir"), std::string::npos) << log_[0];
  EXPECT_NE(board.failure().find("lacks 2 of 4 steps"), std::string::npos) << board.failure();
}

}  // namespace board_test
}  // namespace weft::train
