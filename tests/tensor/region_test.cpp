#include <gtest/gtest.h>

#include <cstring>

#include "tests/devices/devices_support.h"
#include "weft/tensor/device.h"
#include "weft/tensor/stream.h"

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

// A step that needs more memory takes it while its streams work, without waiting for them. A slow
// thread may look too late, so there are several tries.
TEST_P(Regions, OfDeviceMemoryGrowBesideWorkThatIsUnderWay) {
  constexpr std::size_t kBytes = 32 << 20;
  constexpr int kCopies = 40, kTries = 5;
  std::byte* from = device_->take(Memory::HostVisible, kBytes);
  std::byte* to = device_->take(Memory::Device, kBytes);
  bool was_under_way = false;
  {
    const auto stream = device_->make_stream("one", StreamRole::Compute);
    const std::unique_ptr<Region> region = device_->make_region(Memory::Device);
    region->grow(1 << 20);
    for (int i = 0; i < kTries && !was_under_way; ++i) {
      for (int copy = 0; copy < kCopies; ++copy) stream->upload(to, from, kBytes);
      const Event end = stream->record();
      region->grow(2 << 20);
      was_under_way = !stream->reached(end.ticket);
      stream->synchronize();
    }
  }
  EXPECT_TRUE(was_under_way);
  device_->give_back(Memory::Device, to, kBytes);
  device_->give_back(Memory::HostVisible, from, kBytes);
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
