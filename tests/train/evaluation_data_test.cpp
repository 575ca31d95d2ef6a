#include "weft/train/eval/evaluation_data.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/complaints_support.h"
#include "tests/train/train_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::train {
namespace evaluation_data_test {

namespace fs = std::filesystem;

class EvaluationSets : public ::testing::Test {
 protected:
  EvaluationSets() : dir_(fs::path(::testing::TempDir()) / base::text("weft_sets_{}", ::getpid())) {
    fs::create_directories(dir_);
    std::string bytes;
    for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * i / 7 % 251);
    base::write_whole(dir_ / "a", bytes);
    config_ = small_config();
    config_.model.vocab_size = 256;
    config_.train.eval_interval = 1;
    config_.dataset.kind = config::DataKind::Text;
    config_.dataset.path = (dir_ / "a").string();
    config_.dataset.valid_data_path = {(dir_ / "a").string()};
  }
  ~EvaluationSets() override { fs::remove_all(dir_); }

  std::vector<std::int32_t> first_samples() const {
    const std::vector<EvaluationData> sets = open_evaluation_data(config_);
    const auto width = static_cast<std::size_t>(config_.model.seq_length + 1);
    std::vector<std::int32_t> tokens(8 * width);
    for (std::size_t i = 0; i < 8; ++i) {
      sets.at(0).dataset->read(data::Split::Train, i, std::span(tokens).subspan(i * width, width));
    }
    return tokens;
  }

  fs::path dir_;
  config::Config config_;
};

TEST_F(EvaluationSets, AreReadInOneOrderWhateverTheSeedAndHoldNothingBack) {
  const std::vector<std::int32_t> before = first_samples();
  config_.rng.seed += 1;
  config_.dataset.eval_fraction = 0.5;
  EXPECT_EQ(first_samples(), before);
  const std::vector<EvaluationData> sets = open_evaluation_data(config_);
  EXPECT_EQ(sets.at(0).dataset->samples(data::Split::Train),
            static_cast<std::uint64_t>(999 / config_.model.seq_length));
}

TEST_F(EvaluationSets, AreNotOpenedWhereNothingIsEvaluated) {
  config_.train.eval_interval = 0;
  config_.dataset.valid_data_path = {(dir_ / "none").string()};
  EXPECT_TRUE(open_evaluation_data(config_).empty());
}

TEST_F(EvaluationSets, AllThatDoNotFitAreNamedAtOnce) {
  base::write_whole(dir_ / "short", "x");
  config_.dataset.valid_data_path = {(dir_ / "none").string(), "tiny=" + (dir_ / "short").string()};
  const auto complaints = complaints_of([&] { open_evaluation_data(config_); });
  EXPECT_EQ(complaints.size(), 2u);
  EXPECT_TRUE(any_names(complaints, {"dataset.valid_data_path", "'none'"}));
  EXPECT_TRUE(any_names(complaints, {"the set 'tiny'", "1 token"}));
}

}  // namespace evaluation_data_test
}  // namespace weft::train
