#include "weft/tensor/fault.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "weft/base/error.h"

namespace weft::tensor {
namespace fault_test {

TEST(Fault, TheFirstOneCounts) {
  FaultWord word;
  EXPECT_FALSE(fault_in(word));
  raise(word, 7, FaultCode::LabelOutOfRange, {9, 5});
  raise(word, 8, FaultCode::RowOutOfRange, {1, 1});
  const std::optional<Fault> fault = fault_in(word);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->code, FaultCode::LabelOutOfRange);
  EXPECT_EQ(fault->ticket, 7u);
  EXPECT_EQ(fault->numbers[0], 9);
}

TEST(Fault, ThreadsThatRaiseAtOnceLeaveOneWholeFault) {
  for (int round = 0; round < 50; ++round) {
    FaultWord word;
    std::vector<std::thread> threads;
    for (std::int64_t i = 1; i <= 4; ++i) {
      threads.emplace_back([&word, i] { raise(word, 0, FaultCode::RowOutOfRange, {i, 10 * i}); });
    }
    for (std::thread& thread : threads) thread.join();
    const std::optional<Fault> fault = fault_in(word);
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->numbers[1], 10 * fault->numbers[0]);
  }
}

TEST(Fault, OwnDataIsOurBugAndDataFromOtherRanksIsTheirs) {
  const auto told = [](FaultCode code) {
    throw_fault({.code = code, .ticket = 0, .numbers = {1, 2, 3, 4, 5, 6}});
  };
  EXPECT_THROW(told(FaultCode::TokenOutOfRange), base::InternalError);
  EXPECT_THROW(told(FaultCode::CountsDamaged), base::SystemError);
  try {
    told(FaultCode::SlotsForRankAnnounced);
  } catch (const base::SystemError& error) {
    EXPECT_STREQ(error.what(), "member 1 announces 2 slots for a rank; it can have at most 3");
  }
}

}  // namespace fault_test
}  // namespace weft::tensor
