#include <gtest/gtest.h>

#include "tests/devices/devices_support.h"

namespace weft::devices {
namespace gpu_test {

// Tables of tests include the GPU if present; this test reports its absence.
TEST(Gpu, IsTestedToo) {
  if (!why_no_gpu().empty()) GTEST_SKIP() << "no test runs on a GPU: " << why_no_gpu();
  EXPECT_EQ(make_device(DeviceKind::Cuda)->name(), "cuda");
}

}  // namespace gpu_test
}  // namespace weft::devices
