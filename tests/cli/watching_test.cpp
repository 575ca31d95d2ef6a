// Live outputs of a run: TensorBoard, and its evaluation sets.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/cli/program_support.h"
#include "tests/events/event_reader_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/events/event.h"

namespace weft::cli {
namespace watching_test {

namespace fs = std::filesystem;
using base::Json;
using base::text;
using events::Curves;

class Watching : public ::testing::Test {
 protected:
  Watching() : folder_(fs::path(::testing::TempDir()) / text("weft_watching_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Watching() override { fs::remove_all(folder_); }

  // Metrics are in run, events in run_board.
  std::string words(const std::string& run, const std::string& more) const {
    return text(
        "train tiny dataset.path={}/recipes/corpus.txt model.num_layers=1 model.seq_length=16 "
        "model.hidden_size=32 model.num_attention_heads=2 model.num_query_groups=2 "
        "model.kv_channels=16 model.moe_ffn_hidden_size=16 scheduler.lr_warmup_iters=2 "
        "train.eval_interval=2 runtime.run_dir={} --overwrite {}",
        WEFT_SOURCE_DIR,
        (folder_ / run).string(),
        more);
  }
  std::string on_board(const std::string& run) const {
    return text(" logger.tensorboard_dir={}_board ", (folder_ / run).string());
  }
  Curves curves(const std::string& run) const {
    return events::see_curves(folder_ / (run + "_board"));
  }

  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> all;
    for (const std::string& line :
         base::split(base::read_text(folder_ / run / "metrics.jsonl"), '\n')) {
      if (!line.empty()) all.push_back(Json::parse(line));
    }
    return all;
  }

  // Two files that the run does not train on.
  std::string sets() const {
    base::write_whole(folder_ / "digits.txt", std::string(400, '7') + std::string(400, '8'));
    base::write_whole(folder_ / "other", std::string(300, 'a'));
    return text("dataset.valid_data_path=[{0}/digits.txt,letters={0}/other]", folder_.string());
  }

  fs::path folder_;
};

#define NEEDS_PROTOBUF() \
  if (events::protobuf_version().empty()) GTEST_SKIP() << "skipped: this build has no protobuf"

// Every step's value of a tag is the metric of that step, by step and by samples.
void expect_metric(const Curves& curves,
                   const std::vector<Json>& metrics,
                   const std::string& tag,
                   const std::string& metric,
                   double scale = 1) {
  for (const auto& [name, step] :
       {std::pair{tag, "iteration"}, {tag + " vs samples", "consumed_samples"}}) {
    std::map<std::int64_t, float> expected;
    for (const Json& record : metrics) {
      if (!record.contains(metric)) continue;
      expected[record.at(step).get<std::int64_t>()] =
          static_cast<float>(record.at(metric).get<double>() * scale);
    }
    ASSERT_TRUE(curves.contains(name)) << name;
    EXPECT_EQ(curves.at(name), expected) << name;
  }
}

TEST_F(Watching, TensorBoardShowsWhatTheMetricsSay) {
  NEEDS_PROTOBUF();
  const Outcome outcome =
      weft(words("a",
                 "train.train_iters=4 runtime.trace=true logger.log_params_norm=true "
                 "optimizer.log_num_zeros_in_grad=true") +
           on_board("a"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("(tensorboard --logdir="), std::string::npos) << outcome.out;
  const Curves seen = curves("a");
  const std::vector<Json> records = metrics("a");
  ASSERT_EQ(records.size(), 4u);
  expect_metric(seen, records, "lm loss", "lm_loss");
  expect_metric(seen, records, "learning-rate", "learning_rate");
  expect_metric(seen, records, "grad-norm", "grad_norm");
  expect_metric(seen, records, "params-norm", "params_norm");
  expect_metric(seen, records, "num-zeros", "num_zeros");
  EXPECT_NE(outcome.out.find(text(" num zeros: {} | params norm: {:.3f} |",
                                  records[3].at("num_zeros").get<std::int64_t>(),
                                  records[3].at("params_norm").get<double>())),
            std::string::npos)
      << outcome.out;
  expect_metric(seen, records, "iteration-time", "iteration_time_ms", 1e-3);
  expect_metric(seen, records, "lm loss validation", "eval_loss");
  EXPECT_EQ(seen.at("batch-size vs samples").at(32), 8);
  EXPECT_EQ(seen.at("world-size").at(4), 2);
  EXPECT_EQ(seen.at("loss-scale").at(1), 1);
  for (const Json& record : records) {
    const auto step = record.at("iteration").get<std::int64_t>();
    EXPECT_EQ(seen.at("throughput").at(step), record.at("throughput_tflops_per_rank").get<float>());
    const Json& load = record.at("expert_loads").at(0);
    for (const char* key : {"max", "p95", "p50", "dropped"}) {
      EXPECT_EQ(seen.at(text("moe/expert_load_{}_layer_0", key)).at(step),
                load.at(key).get<float>());
    }
    EXPECT_GT(seen.at("mem-max-allocated-bytes/activations").at(step), 0);
    EXPECT_GT(seen.at("mem-max-allocated-bytes").at(step),
              seen.at("mem-max-allocated-bytes/optimizer").at(step));
  }
  const Json exposure = Json::parse(base::read_text(folder_ / "a" / "exposure.json"));
  EXPECT_EQ(seen.at("exposed-communication-ms/ep").at(4),
            exposure.at("kinds").at("ep").at("exposed_ms").get<float>());
}

TEST_F(Watching, ARunThatGoesOnShowsEveryStepOnce) {
  NEEDS_PROTOBUF();
  const std::string saves = text(
      "train.train_iters=5 checkpoint.save={0} checkpoint.load={0} "
      "checkpoint.save_interval=2",
      (folder_ / "saved").string());
  ASSERT_EQ(weft(words("a", saves) + on_board("a")).code, 0);
  const Curves before = curves("a");
  const Outcome again =
      weft(words("a", saves + " checkpoint.ckpt_step=2 --overwrite") + on_board("a"));
  ASSERT_EQ(again.code, 0) << again.err;
  ASSERT_NE(again.out.find("after step 2"), std::string::npos) << again.out;
  const Curves after = curves("a");  // throws if a step occurs twice
  EXPECT_EQ(events::event_files(folder_ / "a_board").size(), 2u);
  for (const char* tag :
       {"lm loss", "lm loss vs samples", "lm loss validation", "lm loss validation vs samples"}) {
    EXPECT_EQ(after.at(tag), before.at(tag)) << tag;
  }
  expect_metric(after, metrics("a"), "iteration-time", "iteration_time_ms", 1e-3);
}

// Process of the program, killed as by a lost machine.
TEST_F(Watching, AKilledRunLosesAtMostTheStepItWasIn) {
  NEEDS_PROTOBUF();
  const Outcome killed = shell(
      "bash",
      text("{} {} {} >/dev/null & for i in {{1..600}}; do [ -s {}/a/metrics.jsonl ] && break; "
           "sleep 0.1; done; sleep 0.2; kill -9 $!; wait $!",
           WEFT_BINARY,
           words("a", "train.train_iters=100000"),
           on_board("a"),
           folder_.string()));
  ASSERT_EQ(killed.code, 137) << killed.err;
  const std::size_t told = metrics("a").size();
  ASSERT_GT(told, 0u);
  const std::size_t shown = curves("a").at("lm loss").size();
  EXPECT_TRUE(shown == told || shown + 1 == told) << shown << " of " << told;
}

TEST_F(Watching, PointsComeAtTheIntervalAndEvaluationsAlways) {
  NEEDS_PROTOBUF();
  const Outcome outcome = weft(words("a",
                                     "train.train_iters=5 logger.tensorboard_log_interval=3 "
                                     "logger.log_validation_ppl_to_tensorboard=true") +
                               on_board("a"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Curves seen = curves("a");
  EXPECT_EQ(seen.at("lm loss").size(), 1u);
  EXPECT_TRUE(seen.at("lm loss").contains(3));
  ASSERT_EQ(seen.at("lm loss validation").size(), 3u);  // 2, 4 and the last
  EXPECT_FLOAT_EQ(seen.at("lm loss validation ppl").at(4),
                  std::exp(seen.at("lm loss validation").at(4)));
}

TEST_F(Watching, AFullDiskIsReportedAndTheRunGoesOn) {
  NEEDS_PROTOBUF();
  const std::string board = on_board("a");
  const Outcome outcome = shell("bash",
                                text("trap '' XFSZ; ulimit -f 16; exec {} {} {}",
                                     WEFT_BINARY,
                                     words("a", "train.train_iters=24 logger.log_interval=24"),
                                     board));
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("warning: cannot write"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("logger.tensorboard_dir lacks "), std::string::npos) << outcome.err;
  EXPECT_EQ(metrics("a").size(), 24u);
  EXPECT_GT(curves("a").at("lm loss").size(), 2u) << "what fits is whole";
}

TEST_F(Watching, AFolderThatCannotBeMadeIsKnownBeforeTheFirstStep) {
  NEEDS_PROTOBUF();
  base::write_whole(folder_ / "a_board", "a file");
  const Outcome outcome = weft(words("a", "train.train_iters=1") + on_board("a"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("logger.tensorboard_dir: '"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("is a file, not a folder"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
}

TEST_F(Watching, EverySetIsEvaluatedUnderItsName) {
  const Outcome outcome = weft(words("a", "train.train_iters=3 " + sets()) +
                               (events::protobuf_version().empty() ? "" : on_board("a")));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("eval      digits.txt: 49 samples"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" validation loss at iteration 2 on letters | lm loss value: "),
            std::string::npos)
      << outcome.out;
  const std::vector<Json> records = metrics("a");
  EXPECT_FALSE(records[0].contains("eval_losses"));
  const Json& last = records[2].at("eval_losses");
  EXPECT_EQ(last.size(), 2u);
  EXPECT_NE(last.at("digits.txt"), last.at("letters"));
  EXPECT_NE(last.at("letters"), records[2].at("eval_loss"));
  if (events::protobuf_version().empty()) return;
  const Curves seen = curves("a");
  EXPECT_EQ(seen.at("lm loss validation letters vs samples").at(24),
            last.at("letters").get<float>());
  EXPECT_EQ(seen.at("lm loss validation digits.txt").size(), 2u);
  EXPECT_FLOAT_EQ(seen.at("lm loss validation (aggregated)").at(3),
                  (last.at("letters").get<float>() + last.at("digits.txt").get<float>()) / 2);
}

// Additional evaluations do not change training.
TEST_F(Watching, SetsDoNotChangeTheRun) {
  const std::string more = "train.train_iters=3 --json";
  ASSERT_EQ(weft(words("with", sets() + " " + more)).code, 0);
  ASSERT_EQ(weft(words("without", more)).code, 0);
  const std::vector<Json> with = metrics("with"), without = metrics("without");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(with[i].at("lm_loss"), without[i].at("lm_loss"));
  EXPECT_EQ(with[1].at("eval_loss"), without[1].at("eval_loss"));
  // Only these sets, with no data held out.
  const Outcome alone = weft(words("alone", sets() + " dataset.eval_fraction=0 " + more));
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_FALSE(metrics("alone")[1].contains("eval_loss"));
  EXPECT_EQ(Json::parse(alone.out).at("eval_losses").size(), 2u);
}

TEST_F(Watching, ASetThatCannotBeReadIsNamed) {
  const Outcome outcome = weft(
      words("a",
            text("train.train_iters=1 dataset.valid_data_path=[books={}/none]", folder_.string())));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("dataset.valid_data_path: the set 'books'"), std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(folder_ / "a" / "metrics.jsonl"));
}

}  // namespace watching_test
}  // namespace weft::cli
