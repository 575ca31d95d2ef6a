// MPI processes, started by tools/mpirun.sh as a user would.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/comm/failure_support.h"
#include "tests/sanitized.h"

namespace weft::comm {
namespace mpi_test {

struct Outcome {
  std::string output;
  int status = 0;
  double seconds = 0;
};

Outcome run_ranks(int ranks, const std::string& scenario) {
  const std::string command = base::text("timeout 60 '{}/tools/mpirun.sh' -n {} '{}' {} 2>&1",
                                         WEFT_SOURCE_DIR,
                                         ranks,
                                         WEFT_MPI_RANKS,
                                         scenario);
  const auto begin = std::chrono::steady_clock::now();
  FILE* pipe = ::popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  while (pipe != nullptr && std::fgets(buffer.data(), buffer.size(), pipe) != nullptr)
    outcome.output += buffer.data();
  const int status = pipe == nullptr ? -1 : ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

int occurrences(const std::string& text, const std::string& word) {
  int count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// By the clock of each rank.
std::vector<double> seconds_to_failure(const std::string& output) {
  constexpr std::string_view kWords = "failed after ";
  std::vector<double> seconds;
  for (auto at = output.find(kWords); at != std::string::npos; at = output.find(kWords, at + 1)) {
    seconds.push_back(std::atof(output.c_str() + at + kWords.size()));
  }
  return seconds;
}

void skip_without_mpi() {
  if (!has_mpi()) GTEST_SKIP() << "this build has no MPI";
  if (kSanitized) GTEST_SKIP() << "the MPI library is not built for the sanitizers";
}

class Mpi : public testing::Test {
 protected:
  void SetUp() override { skip_without_mpi(); }
};

TEST_F(Mpi, TwoRanksConform) {
  const Outcome outcome = run_ranks(2, "conformance");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(occurrences(outcome.output, "cases hold"), 2) << outcome.output;
}

TEST_F(Mpi, ThreeRanksConform) {
  const Outcome outcome = run_ranks(3, "conformance");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(occurrences(outcome.output, "cases hold"), 3) << outcome.output;
}

TEST_F(Mpi, RanksOfNcclMeetWhereMpiSays) {
  const Outcome outcome = run_ranks(3, "meet");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(occurrences(outcome.output, "met 2 others"), 3) << outcome.output;
}

TEST_F(Mpi, AKilledRankEndsTheRunAndIsNamed) {
  const Outcome outcome = run_ranks(3, "killed");
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.output.find("rank 1"), std::string::npos) << outcome.output;
  EXPECT_LT(outcome.seconds, 20);
}

TEST_F(Mpi, ARankThatNeverReturnsIsNamedAndEnded) {
  const Outcome outcome = run_ranks(3, "stuck");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 1 did not arrive"), std::string::npos) << outcome.output;
  EXPECT_LT(outcome.seconds, 20);
}

// Long before the timeout.
TEST_F(Mpi, PeersLearnWhoFailedAndWhy) {
  const Outcome outcome = run_ranks(3, "told");
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_EQ(occurrences(outcome.output, "rank 1 failed: the disk is full"), 2) << outcome.output;
  EXPECT_LT(outcome.seconds, 15);
}

class MpiFailure : public testing::TestWithParam<FailureScenario> {
 protected:
  void SetUp() override { skip_without_mpi(); }
};

TEST_P(MpiFailure, EndsAllRanksInTimeAndNamesTheCause) {
  const Outcome outcome = run_ranks(3, GetParam().name);
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  for (const std::string& text : GetParam().says)
    EXPECT_NE(outcome.output.find(text), std::string::npos) << text << " in\n" << outcome.output;
  for (const int rank : {0, 1, 2})
    EXPECT_EQ(occurrences("\n" + outcome.output, base::text("\nrank {}: ", rank)), 1)
        << outcome.output;
  const std::vector<double> seconds = seconds_to_failure(outcome.output);
  EXPECT_EQ(seconds.size(), 3u) << outcome.output;
  for (const double one : seconds) EXPECT_LT(one, 10) << outcome.output;
}

INSTANTIATE_TEST_SUITE_P(Processes,
                         MpiFailure,
                         testing::ValuesIn(failure_scenarios()),
                         [](const auto& one) { return one.param.name; });

}  // namespace mpi_test
}  // namespace weft::comm
