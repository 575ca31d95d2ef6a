#include "weft/schedule/text/plan_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/schedule/plans_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/schedule/text/text.h"

namespace weft::schedule {
namespace plan_files_test {

namespace fs = std::filesystem;

class PlanFiles : public ::testing::Test {
 protected:
  PlanFiles() : folder_(fs::path(::testing::TempDir()) / base::text("weft_plans_{}", ::getpid())) {}
  ~PlanFiles() override { fs::remove_all(folder_); }

  // Replaces a part of a rank's file; the part must exist.
  void change(int rank, const std::string& from, const std::string& to) {
    std::string text = base::read_text(file_of(folder_, rank));
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in\n" << text;
    base::write_whole(file_of(folder_, rank), text.replace(at, from.size(), to));
  }

  std::string complaint_of_taking(const PlanCase& c) const {
    try {
      std::vector<RankPlan> plans = plans_of(c);
      take_orders_from(folder_, plans);
    } catch (const base::ConfigError& error) {
      return fmt::format("{}", fmt::join(error.complaints(), "\n"));
    }
    return "";
  }

  std::string file(int rank) const { return file_of(folder_, rank).string(); }

  const fs::path folder_;
};

const PlanCase kPlain{.layers = "mm", .pp = 2, .micro_batches = 2};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(PlanFiles, AnOrderReadBackIsTheOneThatWasWritten) {
  PlanCase overlapped = kPlain;
  overlapped.overlap = overlapped.delay = true;
  const std::vector<RankPlan> written = plans_of(overlapped);
  write_orders(folder_, written);
  std::vector<RankPlan> plans = plans_of(kPlain);
  ASSERT_NE(print(plans[0].training), print(written[0].training));
  take_orders_from(folder_, plans);
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    EXPECT_EQ(print(plans[rank].training), print(written[rank].training));
  }
}

TEST_F(PlanFiles, MissingAndForeignFilesAreNamed) {
  EXPECT_TRUE(contains(complaint_of_taking(kPlain), file(0)));
  write_orders(folder_, plans_of(kPlain));
  fs::remove(file_of(folder_, 1));
  const std::string missing = complaint_of_taking(kPlain);
  EXPECT_TRUE(contains(missing, file(1))) << missing;
  EXPECT_TRUE(contains(missing, "weft schedule --write")) << missing;
  EXPECT_FALSE(contains(missing, file(0))) << missing;
  write_orders(folder_, plans_of(kPlain));
  PlanCase whole = kPlain;
  whole.pp = 1;
  EXPECT_TRUE(contains(complaint_of_taking(whole), file(1) + " is of no rank"));
}

TEST_F(PlanFiles, WhatDoesNotParseNamesFileAndLine) {
  write_orders(folder_, plans_of(kPlain));
  change(0, "compute  0F0.attention\n", "compute  0F0.atention\n");
  change(1, "compute ", "computer ");
  const std::string wrong = complaint_of_taking(kPlain);
  EXPECT_TRUE(contains(wrong, file(0) + ": schedule line 2: ")) << wrong;
  EXPECT_TRUE(contains(wrong, "0F0.atention")) << wrong;
  EXPECT_TRUE(contains(wrong, file(1) + ": schedule line 2: 'computer' is not a lane")) << wrong;
}

TEST_F(PlanFiles, DoubledNodesAreNamed) {
  write_orders(folder_, plans_of(kPlain));
  change(0, "compute  F0.embed\n", "compute  F0.embed\ncompute  F0.embed\n");
  const std::string wrong = complaint_of_taking(kPlain);
  EXPECT_TRUE(contains(wrong, file(0))) << wrong;
  EXPECT_TRUE(contains(wrong, "F0.embed is issued twice")) << wrong;
}

TEST_F(PlanFiles, MissingAndMisplacedNodesAreNamedWithTheirFile) {
  write_orders(folder_, plans_of(kPlain));
  change(0, "compute  0W0.route\n", "");
  EXPECT_TRUE(complaint_of_taking(kPlain).starts_with(file(0) + ": 0W0.route is missing\n"));
  write_orders(folder_, plans_of(kPlain));
  change(0,
         "compute  0F0.attention\ncompute  0F0.route\n",
         "compute  0F0.route\ncompute  0F0.attention\n");
  const std::string early = complaint_of_taking(kPlain);
  EXPECT_TRUE(contains(early, file(0) + ": 0F0.route may start before 0F0.attention is over"))
      << early;
  EXPECT_TRUE(contains(early, ">0F0.route<  [0F0.attention]")) << early;
}

TEST_F(PlanFiles, AnOrderThatDiffersBetweenPeersNamesTheOperations) {
  write_orders(folder_, plans_of(kPlain));
  const std::string receive = "pp_receive_previous c1F1.receive\n";
  change(1, receive, "");
  change(1, "pp_receive_previous c1F0.receive\n", receive + "pp_receive_previous c1F0.receive\n");
  const std::string wrong = complaint_of_taking(kPlain);
  EXPECT_TRUE(contains(wrong, folder_.string() + ": ")) << wrong;
  EXPECT_TRUE(contains(wrong, "c0F0.send on rank 0 and c1F1.receive on rank 1")) << wrong;
}

// Rank 0 waits for a gradient before it sends the gradient's input.
TEST_F(PlanFiles, ACircleBetweenRanksIsNamed) {
  write_orders(folder_, plans_of(kPlain));
  const std::string receive = "pp_receive_next c0D0.receive\n";
  change(0, receive, "");
  change(0, "compute  F0.embed\n", receive + "compute  F0.embed < c0D0.receive\n");
  const std::string wrong = complaint_of_taking(kPlain);
  EXPECT_TRUE(contains(wrong, "c0D0.receive") || contains(wrong, "c1D0.send")) << wrong;
}

TEST_F(PlanFiles, FilesOfAnotherStepAreNamedAsThat) {
  write_orders(folder_, plans_of(kPlain));
  PlanCase longer = kPlain;
  longer.micro_batches = 8;
  EXPECT_TRUE(contains(complaint_of_taking(longer),
                       file(0) + ": it was written for another step: it has 2 micro-batches, and "
                                 "this run has 8"));
}

TEST_F(PlanFiles, AFileThatLacksManyNodesIsComplainedAboutInAFewLines) {
  PlanCase longer = kPlain;
  longer.layers = "mmmmmm";
  longer.micro_batches = 8;
  write_orders(folder_, plans_of(longer));
  std::string kept;
  std::size_t dropped = 0;
  for (const std::string& line : base::split(base::read_text(file(0)), '\n')) {
    const bool is_dropped = contains(line, "W") && line.ends_with(".route");
    if (is_dropped) ++dropped;
    if (!is_dropped && !line.empty()) kept += line + '\n';
  }
  ASSERT_EQ(dropped, 24u);
  base::write_whole(file(0), kept);
  const std::string wrong = complaint_of_taking(longer);
  const std::vector<std::string> lines = base::split(wrong, '\n');
  const auto is_fault = [&](const std::string& line) { return line.starts_with(file(0)); };
  EXPECT_EQ(std::ranges::count_if(lines, is_fault), 20) << wrong;
  EXPECT_LT(lines.size(), 40u) << wrong;
  EXPECT_TRUE(contains(wrong, "... and 4 more like these")) << wrong;
}

}  // namespace plan_files_test
}  // namespace weft::schedule
