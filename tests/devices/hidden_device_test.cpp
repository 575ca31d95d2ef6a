#include <gtest/gtest.h>

#include "tests/devices/devices_support.h"
#include "tests/devices/hidden_device_support.h"
#include "weft/base/error.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/transfer.h"
#include "weft/tensor/transfers.h"

namespace weft::devices {
namespace hidden_device_test {

using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

TEST(HiddenDevice, OperationsAndCopiesReachItsMemory) {
  Workbench bench(2, DeviceKind::HiddenCpu);
  const Tensor x(bench.pool, DType::F32, {3}, Tag::Activations);
  tensor::write<float>(*bench.stream, x, std::vector<float>{1, 2, 3});
  kernels::scale(*bench.stream, x, 2);
  EXPECT_EQ(tensor::read<float>(*bench.stream, x), (std::vector<float>{2, 4, 6}));
}

TEST(HiddenDevice, TheHostReachesHostVisibleTensorsAlone) {
  Workbench bench(1, DeviceKind::HiddenCpu);
  const Tensor visible = Tensor::host_visible(bench.pool, DType::I64, {2}, Tag::Workspace);
  visible.host<std::int64_t>()[1] = 5;
  const Tensor copy(bench.pool, DType::I64, {2}, Tag::Workspace);
  kernels::copy(*bench.stream, copy, visible);
  EXPECT_EQ(tensor::read<std::int64_t>(*bench.stream, copy)[1], 5);
  EXPECT_THROW(copy.host<std::int64_t>(), base::InternalError);
}

TEST(HiddenDeviceDeathTest, AHostThatFollowsADeviceAddressDies) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Workbench bench(1, DeviceKind::HiddenCpu);
  const Tensor x(bench.pool, DType::F32, {3}, Tag::Activations);
  kernels::zero(*bench.stream, x);
  const volatile float* address = x.data<float>(*bench.stream);
  EXPECT_DEATH(static_cast<void>(address[0]), "");
  EXPECT_DEATH(const_cast<volatile float*>(address)[0] = 1, "");
}

TEST(HiddenDevice, RanksOfAProcessReachEachOthersMemory) {
  Workbench one(1, DeviceKind::HiddenCpu), other(1, DeviceKind::HiddenCpu);
  const Tensor from(one.pool, DType::F32, {2}, Tag::Activations);
  const Tensor to(other.pool, DType::F32, {2}, Tag::Activations);
  tensor::write<float>(*one.stream, from, std::vector<float>{7, 8});
  const std::byte* theirs = from.raw(*one.stream);
  std::byte* mine = to.raw(*other.stream);
  other.stream->enqueue_host(
      "take",
      tensor::WorkClass::Communication,
      [=](tensor::Transfers& transfers) { transfers.copy(mine, theirs, 8); });
  EXPECT_EQ(tensor::read<float>(*other.stream, to), (std::vector<float>{7, 8}));
}

}  // namespace hidden_device_test
}  // namespace weft::devices
