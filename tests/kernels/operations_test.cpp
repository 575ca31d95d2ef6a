// Names the operations that no case of the conformance table calls.
#include "weft/kernels/operations.h"

#include <set>

#include "tests/kernels/conformance_support.h"
#include "weft/tensor/cpu/device.h"

namespace weft::kernels {
namespace operations_test {

using Names = std::set<std::string>;

// Replacement of an operation: records the call and does no work.
template <auto kOperation>
struct Remembered;
template <typename... Arguments, void (*Operations::*kOperation)(Arguments...)>
struct Remembered<kOperation> {
  static inline bool called = false;
  static void call(Arguments...) { called = true; }
};

#define WEFT_REMEMBER(name) .name = Remembered<&Operations::name>::call,
const Operations kRemembering{WEFT_EACH_OPERATION(WEFT_REMEMBER)};
#undef WEFT_REMEMBER

Names never_called() {
  Names names;
#define WEFT_INSERT_IF_NOT_CALLED(name) \
  if (!Remembered<&Operations::name>::called) names.insert(#name);
  WEFT_EACH_OPERATION(WEFT_INSERT_IF_NOT_CALLED)
#undef WEFT_INSERT_IF_NOT_CALLED
  return names;
}

// Operations that adamw_test.cpp and adamw_forms_test.cpp compare with double precision on every
// device: the table lacks the dtypes of their state.
const Names kTestedElsewhere{"adamw", "masters_in_half"};

TEST(Operations, EachHasACaseThatRunsOnEveryDevice) {
  for (const auto& test : all_cases()) {
    Arena arena(*test,
                std::make_unique<tensor::cpu::CpuDevice>(kRemembering, 1),
                Rows::Contiguous,
                Start::Unwritten);
    arena.run();
  }
  EXPECT_EQ(never_called(), kTestedElsewhere);
}

}  // namespace operations_test
}  // namespace weft::kernels
