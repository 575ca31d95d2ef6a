// Checks of every case of every operation.
#include <algorithm>
#include <cmath>

#include "tests/kernels/conformance_support.h"

namespace weft::kernels {
namespace conformance_test {

// One BLAS thread, as in a run: only the kernels' own threads split work.
class OneBlasThread : public ::testing::Environment {
 public:
  void SetUp() override { prepare_process(); }
};
const auto* const one_blas_thread = ::testing::AddGlobalTestEnvironment(new OneBlasThread);

void compare(const Values& got, const Expected& expected, const Argument& argument) {
  Values want = expected.values;
  double largest = 1e-30;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (argument.role == Role::Sum) want[i] += argument.values[expected.elements[i]];
    largest = std::max(largest, std::abs(want[i]));
  }
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::size_t e = expected.elements[i];
    ASSERT_NEAR(got[e], want[i], expected.tolerance * largest) << argument.name << "[" << e << "]";
  }
}

void expect_strided_rows_are_the_same_matrix(const DeviceCase& at, const Arena& dense) {
  Arena strided(at, 1, Rows::MayBeStrided);
  strided.run();
  EXPECT_TRUE(strided.surroundings_untouched());
  for (std::size_t i = 0; i < at.test->arguments.size(); ++i) {
    Argument argument = at.test->arguments[i];
    argument.role = Role::Output;
    compare(strided.read(i), whole(i, dense.read(i), tolerance_of(argument.dtype)), argument);
  }
}

void expect_same_bits(const Arena& several, const Arena& one, const Case& test, int threads) {
  for (std::size_t i = 0; i < test.arguments.size(); ++i) {
    EXPECT_EQ(several.bytes(i), one.bytes(i)) << test.arguments[i].name << ", " << threads;
  }
}

void expect_inputs_as_they_were(const Arena& arena, const Case& test) {
  for (std::size_t i = 0; i < test.arguments.size(); ++i) {
    if (test.arguments[i].role == Role::Input) {
      EXPECT_EQ(arena.read(i), test.arguments[i].values) << test.arguments[i].name;
    }
  }
}

// Repeating an assigning operation has no effect; repeating an accumulating one doubles the sum.
void expect_assigned_or_added_again(const Arena& twice, const Arena& once, const Case& test) {
  for (std::size_t i = 0; i < test.arguments.size(); ++i) {
    const Argument& argument = test.arguments[i];
    Values added = once.read(i);
    if (argument.role != Role::Sum) {
      EXPECT_EQ(twice.read(i), added) << argument.name;
      continue;
    }
    for (std::size_t e = 0; e < added.size(); ++e) added[e] = 2 * (added[e] - argument.values[e]);
    compare(twice.read(i), whole(i, added, tolerance_of(argument.dtype)), argument);
  }
}

bool may_be_strided(const Case& test) {
  return std::ranges::any_of(test.arguments, [](const Argument& argument) {
    return argument.rows == Rows::MayBeStrided;
  });
}

// One run is held against double precision, and is what all further runs are held against: strided
// rows, two and three threads, a second call.
TEST_P(Conformance, MatchesDoublePrecisionInEveryRun) {
  const Case& test = *GetParam().test;
  Arena one(GetParam(), 1, Rows::Contiguous);
  one.run();
  for (const Expected& expected : expected_of(GetParam().test)) {
    compare(one.read(expected.argument), expected, test.arguments[expected.argument]);
  }
  expect_inputs_as_they_were(one, test);
  if (GetParam().device == DeviceKind::HiddenCpu) return;  // computes as the CPU does
  if (may_be_strided(test)) expect_strided_rows_are_the_same_matrix(GetParam(), one);
  Arena three(GetParam(), 3, Rows::Contiguous), two(GetParam(), 2, Rows::Contiguous);
  three.run();
  expect_same_bits(three, one, test, 3);
  two.run();
  expect_same_bits(two, one, test, 2);
  expect_inputs_as_they_were(two, test);
  two.run();
  expect_assigned_or_added_again(two, one, test);
}

}  // namespace conformance_test
}  // namespace weft::kernels
