#include <gtest/gtest.h>

#include <cstring>

#include "tests/devices/devices_support.h"
#include "weft/tensor/device.h"

namespace weft::tensor {
namespace region_test {

class Regions : public testing::TestWithParam<devices::DeviceKind> {
 protected:
  const std::unique_ptr<Device> device_ = devices::make_device(GetParam());
};

const auto name_of_device = [](const auto& info) { return devices::name_of(info.param); };

INSTANTIATE_TEST_SUITE_P(Devices,
                         Regions,
                         testing::ValuesIn(devices::all_devices()),
                         name_of_device);

TEST_P(Regions, GrowByWhatIsAskedForAtLeast) {
  for (const Memory memory : {Memory::Device, Memory::HostVisible}) {
    const std::unique_ptr<Region> region = device_->make_region(memory);
    for (const std::size_t bytes : {1u, 5u << 20, 256u, 40u << 20}) {
      const std::span<std::byte> more = region->grow(bytes);
      EXPECT_GE(more.size(), bytes);
      EXPECT_LE(more.size(), bytes + (2u << 20));
    }
  }
}

TEST_P(Regions, OfDeviceMemoryGrowInPlaceAndGiveTheirEndBack) {
  if (GetParam() == devices::DeviceKind::HiddenCpu) GTEST_SKIP() << "it has separate pieces";
  const std::unique_ptr<Region> region = device_->make_region(Memory::Device);
  const std::span<std::byte> first = region->grow(3 << 20), second = region->grow(100 << 20);
  EXPECT_EQ(second.data(), first.data() + first.size());
  const std::size_t gone = region->give_back_end(second.size());
  EXPECT_EQ(gone, second.size());
  EXPECT_EQ(region->give_back_end(1), 0u);
  EXPECT_EQ(region->grow(1 << 20).data(), second.data());
}

TEST_P(Regions, OfHostVisibleMemoryAreTheHosts) {
  const std::unique_ptr<Region> region = device_->make_region(Memory::HostVisible);
  for (int i = 0; i < 3; ++i) {
    const std::span<std::byte> more = region->grow(100000);
    std::memset(more.data(), i, more.size());
    EXPECT_EQ(more.back(), static_cast<std::byte>(i));
  }
}

}  // namespace region_test
}  // namespace weft::tensor
