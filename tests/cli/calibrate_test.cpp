// weft calibrate --hardware: writes a profile that a plan reads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/program_support.h"
#include "tests/sanitized.h"
#include "weft/base/json.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace calibrate_test {

namespace fs = std::filesystem;
using base::Json;

class CalibrateCommand : public ::testing::Test {
 protected:
  CalibrateCommand() : folder_(fs::temp_directory_path() / base::text("weft_here_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~CalibrateCommand() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  const fs::path folder_;
};

// Times are not checked, so other load on the machine does not matter.
TEST_F(CalibrateCommand, WritesAProfileOfThisMachineThatAPlanTakes) {
  if (kSanitized)
    GTEST_SKIP() << "skipped: under a sanitizer copies are too slow to be a machine's";
  const std::string profile = file("here.yaml");
  const Outcome made =
      weft("calibrate tiny world=1 ep=1 gbs=4 mbs=2 --steps=4 --json --out=" + file("here.json") +
           " --hardware=" + profile + " --given=nic_gbps=1.5,nic_latency_us=30");
  ASSERT_EQ(made.code, 0) << made.err;
  const Json hardware = Json::parse(made.out)["hardware"];
  EXPECT_EQ(hardware["file"], profile);
  EXPECT_EQ(hardware["numbers"]["nic_gbps"], 1.5);
  EXPECT_EQ(hardware["sources"]["nic_gbps"], "given on the command line");
  EXPECT_GT(hardware["planned_ms"].get<double>(), 0);
  const Outcome priced = weft("plan --simulate tiny world=1 ep=1 --json --gpu=" + profile);
  ASSERT_EQ(priced.code, 0) << priced.err;
  EXPECT_GT(Json::parse(priced.out)["step_ms"].get<double>(), 0);
  const Outcome wider =
      weft("plan --simulate tiny world=1 ep=1 runtime.threads_per_rank=2 --gpu=" + profile);
  EXPECT_EQ(wider.code, 2);
  EXPECT_NE(wider.err.find("is of ranks with 1 thread"), std::string::npos) << wider.err;
  const Outcome searched =
      weft("plan tiny --gpus=1 --gbs=4 --top=1 --json --write=" + file("best.yaml") +
           " --gpu=" + profile);
  ASSERT_EQ(searched.code, 0) << searched.err;
  const Json best = Json::parse(searched.out)["layouts"][0];
  EXPECT_GT(best["step_ms"].get<double>(), 0);
  // The recipe runs on these cores, with the model's own numbers.
  const Outcome checked = weft("check " + file("best.yaml") + " dataset.kind=mock --json");
  ASSERT_EQ(checked.code, 0) << checked.err << checked.out;
  const Json run = Json::parse(checked.out);
  EXPECT_TRUE(run["runs"].get<bool>()) << checked.out;
  EXPECT_EQ(run["config"]["model"]["params_dtype"], "fp32");
}

TEST_F(CalibrateCommand, WrongQuestionsAreRefusedBeforeAnythingRuns) {
  const auto said = [&](const std::string& words) {
    const Outcome outcome =
        weft("calibrate tiny world=1 ep=1 gbs=4 --out=" + file("here.json") + " " + words);
    EXPECT_EQ(outcome.code, 2) << words << outcome.out;
    return outcome.err;
  };
  const std::string wanted = "--hardware=" + file("here.yaml") + " ";
  EXPECT_NE(said(wanted + "--given=nic_gbp=3").find("did you mean 'nic_gbps'?"), std::string::npos);
  EXPECT_NE(said(wanted + "--given=nic_gbps=-3").find("is a number from"), std::string::npos);
  EXPECT_NE(said(wanted + "--like=h100").find("--like is for a GPU"), std::string::npos);
  EXPECT_NE(said("--like=h100").find("--hardware"), std::string::npos);
  const std::size_t cores = base::usable_cores().size();
  EXPECT_NE(said(wanted + base::text("runtime.threads_per_rank={}", cores + 1)).find("share"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(file("here.yaml")));
  const std::string nowhere = file("no/such/folder/here.yaml");
  const Outcome unwritable = weft("calibrate tiny world=1 ep=1 gbs=4 --out=" + file("here.json") +
                                  " --hardware=" + nowhere);
  EXPECT_EQ(unwritable.code, 1);
  EXPECT_NE(unwritable.err.find(nowhere), std::string::npos) << unwritable.err;
  EXPECT_FALSE(fs::exists(file("here.json")));
}

}  // namespace calibrate_test
}  // namespace weft::cli
