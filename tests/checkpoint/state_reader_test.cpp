// Every byte read is checked, and every wanted element was stored.
#include "weft/checkpoint/state_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/devices/devices_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/shard.h"
#include "weft/tensor/transfer.h"

namespace weft::checkpoint {
namespace state_reader_test {

namespace fs = std::filesystem;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

class StateReading : public ::testing::Test {
 protected:
  StateReading()
      : folder_(fs::path(::testing::TempDir()) / base::text("weft_reading_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~StateReading() override { fs::remove_all(folder_); }

  Tensor counted(std::int64_t elements, float first) {
    Tensor t(bench_.pool, DType::F32, {elements}, Tag::Weights);
    std::vector<float> values(static_cast<std::size_t>(elements));
    for (float& value : values) value = first++;
    tensor::upload<float>(*bench_.stream, t, values);
    bench_.stream->synchronize();
    return t;
  }

  Manifest write(int rank, const std::vector<StateEntry>& entries) {
    return write_shard(folder_, rank, entries, read_tensors(*bench_.stream, entries));
  }

  // Error of each way to read a tensor, in turn; "": none.
  std::vector<std::string> complaints(const Manifest& manifest,
                                      const std::string& name,
                                      std::int64_t elements) {
    const tensor::Slice whole = tensor::whole_slice({elements});
    const auto said = [](const auto& read) -> std::string {
      try {
        read();
      } catch (const base::ConfigError& error) {
        return error.what();
      }
      return "";
    };
    std::vector<float> floats(static_cast<std::size_t>(elements));
    std::vector<std::string> all;
    all.push_back(said([&] {
      const Tensor into = counted(elements, 0);
      StateReader reader(manifest, folder_);
      reader.read(*bench_.stream, {.name = name, .tensor = into, .slice = whole});
    }));
    all.push_back(said([&] { StateReader(manifest, folder_).read(name, whole, floats); }));
    all.push_back(said([&] {
      StateReader(manifest, folder_)
          .read_bytes(name, FileDtype::F32, whole, std::as_writable_bytes(std::span(floats)));
    }));
    return all;
  }

  devices::Workbench bench_;
  fs::path folder_;
};

// Two tensors of two blocks each; a changed bit at the first and the last byte of each block.
TEST_F(StateReading, TheChecksumOfEveryBlockIsCompared) {
  constexpr auto kInBlock = static_cast<std::int64_t>(kBlockBytes / sizeof(float));
  constexpr std::int64_t kElements = kInBlock + 5;
  const Manifest manifest = write(
      0,
      {{.name = "a", .tensor = counted(kElements, 1), .slice = tensor::whole_slice({kElements})},
       {.name = "b", .tensor = counted(kElements, 7), .slice = tensor::whole_slice({kElements})}});
  const fs::path shard = folder_ / shard_name(0);
  const std::string whole = base::read_text(shard);
  for (const std::string name : {"a", "b"}) {
    EXPECT_EQ(complaints(manifest, name, kElements), std::vector<std::string>(3, ""));
    const std::uint64_t begin = manifest.states.find(name)->second.slices.front().at;
    const std::uint64_t end = begin + kElements * sizeof(float);
    for (const std::uint64_t at : {begin, begin + kBlockBytes - 1, begin + kBlockBytes, end - 1}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      base::write_whole(shard, damaged);
      for (const std::string& said : complaints(manifest, name, kElements)) {
        EXPECT_NE(said.find("checksum"), std::string::npos)
            << name << " byte " << at << ": " << said;
      }
      EXPECT_EQ(StateReader(manifest, folder_).verify([](std::uint64_t) {}).size(), 1u);
      const std::string other = name == "a" ? "b" : "a";
      EXPECT_EQ(complaints(manifest, other, kElements), std::vector<std::string>(3, ""));
    }
    base::write_whole(shard, whole);
  }
}

// Two ranks store a range each, and no rank stores the element between them.
TEST_F(StateReading, AHoleOfOneElementBetweenStoredRangesIsFound) {
  const auto range = [](std::int64_t begin, std::int64_t count) {
    tensor::Slice slice = tensor::whole_slice({8});
    slice.elements = {.begin = begin, .count = count};
    return slice;
  };
  const auto stored = [&](std::int64_t first_count) {
    Manifest all =
        write(0,
              {{.name = "a", .tensor = counted(first_count, 1), .slice = range(0, first_count)}});
    add_part(all, write(1, {{.name = "a", .tensor = counted(4, 5), .slice = range(4, 4)}}));
    return all;
  };
  EXPECT_EQ(complaints(stored(4), "a", 8), std::vector<std::string>(3, ""));
  for (const std::string& said : complaints(stored(3), "a", 8)) {
    EXPECT_NE(said.find("tensor 'a' lacks its element 3"), std::string::npos) << said;
  }
}

}  // namespace state_reader_test
}  // namespace weft::checkpoint
