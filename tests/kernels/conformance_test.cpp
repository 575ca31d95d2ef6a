// Checks of every case of every operation.
#include <cmath>

#include "tests/kernels/conformance_support.h"
#include "tests/small_pages.h"

namespace weft::kernels {
namespace conformance_test {

// One BLAS thread, as in a run: only the kernels' own threads split work.
class OneBlasThread : public ::testing::Environment {
 public:
  void SetUp() override {
    prepare_process();
    use_small_pages();
  }
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

TEST_P(Conformance, MatchesDoublePrecision) {
  const Case& test = *GetParam().test;
  Arena arena(GetParam(), 1, Rows::Contiguous);
  arena.run();
  for (const Expected& expected : expected_of(GetParam().test)) {
    compare(arena.read(expected.argument), expected, test.arguments[expected.argument]);
  }
}

TEST_P(Conformance, StridedRowsAreTheSameMatrix) {
  const Case& test = *GetParam().test;
  Arena dense(GetParam(), 1, Rows::Contiguous), strided(GetParam(), 1, Rows::MayBeStrided);
  dense.run();
  strided.run();
  EXPECT_TRUE(strided.surroundings_untouched());
  for (std::size_t i = 0; i < test.arguments.size(); ++i) {
    Argument argument = test.arguments[i];
    argument.role = Role::Output;
    compare(strided.read(i), whole(i, dense.read(i), tolerance_of(argument.dtype)), argument);
  }
}

TEST_P(Conformance, TheThreadCountChangesNoBit) {
  const Case& test = *GetParam().test;
  Arena one(GetParam(), 1, Rows::Contiguous);
  one.run();
  for (const int threads : {2, 3}) {
    Arena several(GetParam(), threads, Rows::Contiguous);
    several.run();
    for (std::size_t i = 0; i < test.arguments.size(); ++i) {
      EXPECT_EQ(several.bytes(i), one.bytes(i)) << test.arguments[i].name << ", " << threads;
    }
  }
}

TEST_P(Conformance, InputsStayAsTheyWere) {
  const Case& test = *GetParam().test;
  Arena arena(GetParam(), 2, Rows::Contiguous);
  arena.run();
  for (std::size_t i = 0; i < test.arguments.size(); ++i) {
    if (test.arguments[i].role == Role::Input) {
      EXPECT_EQ(arena.read(i), test.arguments[i].values) << test.arguments[i].name;
    }
  }
}

// Repeating an assigning operation has no effect; repeating an accumulating one doubles the sum.
TEST_P(Conformance, ASecondCallAssignsAgainOrAddsAgain) {
  const Case& test = *GetParam().test;
  Arena once(GetParam(), 2, Rows::Contiguous), twice(GetParam(), 2, Rows::Contiguous);
  once.run();
  twice.run();
  twice.run();
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

}  // namespace conformance_test
}  // namespace weft::kernels
