// Damaged checkpoint files give an error that names the file, or the saved state.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "tests/devices/devices_support.h"
#include "tests/soak.h"
#include "weft/base/crc32c.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/checkpoint/shard.h"
#include "weft/checkpoint/state_reader.h"
#include "weft/tensor/transfer.h"

namespace weft::checkpoint {
namespace damage_test {

namespace fs = std::filesystem;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

// Writes a new file: some file systems sync a file that replaces another.
void put(const fs::path& path, const std::string& bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

class Damage : public ::testing::Test {
 protected:
  Damage()
      : folder_(fs::path(::testing::TempDir()) / base::text("weft_damage_{}", ::getpid())),
        shard_(folder_ / shard_name(0)) {
    fs::create_directories(folder_);
    const Tensor all = filled({8, 6}, 1);
    entries_ = {{.name = "weights/a", .tensor = all, .slice = tensor::whole_slice({8, 6})},
                {.name = "weights/b",
                 .tensor = filled({4, 3}, 100),
                 .slice = tensor::slice_of({8, 3}, {{{.begin = 2, .count = 4}}, {{0, 3}}})}};
    put(folder_ / kManifestName,
        manifest_text(write_shard(folder_, 0, entries_, read_tensors(*bench_.stream, entries_))));
    bytes_ = base::read_text(shard_);
    manifest_ = base::read_text(folder_ / kManifestName);
  }
  ~Damage() override { fs::remove_all(folder_); }

  Tensor filled(const tensor::Shape& shape, float first) {
    Tensor t(bench_.pool, DType::F32, shape, Tag::Weights);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& value : values) value = first++;
    tensor::upload<float>(*bench_.stream, t, values);
    bench_.stream->synchronize();
    return t;
  }

  // Error of reading the folder; empty: it read the saved state.
  std::string complaint() {
    try {
      const Manifest manifest = read_manifest(folder_);
      StateReader reader(manifest, folder_);
      bool is_same = true;
      for (const StateEntry& entry : entries_) {
        const Tensor read = filled(entry.tensor.shape(), -1);
        reader.read(*bench_.stream, {.name = entry.name, .tensor = read, .slice = entry.slice});
        is_same &= tensor::read<float>(*bench_.stream, read) ==
                   tensor::read<float>(*bench_.stream, entry.tensor);
      }
      return is_same ? "" : "it reads something else";
    } catch (const base::ConfigError& error) {
      return base::text("error: {}", error.what());
    } catch (const base::SystemError& error) {
      return base::text("error: {}", error.what());
    }
  }

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  // Changes, removes, repeats or adds some bytes.
  std::string damaged(std::string bytes) {
    const std::size_t at = below(bytes.size()), length = 1 + below(40);
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 4:
        bytes.append(length, static_cast<char>(below(256)));
        break;
      default:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min(length, bytes.size() - at),
                    '\0');
    }
    return bytes;
  }

  devices::Workbench bench_;
  fs::path folder_, shard_;
  std::vector<StateEntry> entries_;
  std::string bytes_, manifest_;
  std::mt19937 random_{20261116};
};

TEST_F(Damage, IsFoundByReadingEveryByte) {
  const Manifest manifest = read_manifest(folder_);
  std::uint64_t read = 0;
  const auto verify = [&] {
    read = 0;
    return StateReader(manifest, folder_).verify([&](std::uint64_t bytes) { read = bytes; });
  };
  EXPECT_EQ(verify(), std::vector<std::string>());
  EXPECT_EQ(read, 4u * (8 * 6 + 4 * 3));
  for (const std::size_t at : {std::size_t{9}, bytes_.size() - 1}) {  // header, last number
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    put(shard_, damaged);
    EXPECT_TRUE(wrong_files(folder_, manifest).empty());  // by size
    const std::vector<std::string> wrong = verify();
    ASSERT_EQ(wrong.size(), 1u);
    EXPECT_NE(wrong[0].find(shard_.string()), std::string::npos) << wrong[0];
  }
  fs::remove(shard_);
  EXPECT_EQ(verify().size(), 1u);
}

TEST_F(Damage, OfAShardIsAlwaysFoundAndNamed) {
  ASSERT_EQ(complaint(), "");
  for (int i = 0; i < few_or_many(400, 10000); ++i) {
    const std::string damage = damaged(bytes_);
    if (damage == bytes_) continue;
    put(shard_, damage);
    const std::string found = complaint();
    ASSERT_TRUE(found.starts_with("error: ") && found.find("rank_0.safetensors") != found.npos)
        << i << ": " << found;
  }
}

TEST_F(Damage, OfAManifestIsAlwaysFoundAndNamed) {
  for (int i = 0; i < few_or_many(400, 10000); ++i) {
    const std::string damage = damaged(manifest_);
    if (damage == manifest_) continue;
    put(folder_ / kManifestName, damage);
    const std::string found = complaint();
    ASSERT_TRUE(found.starts_with("error: ") && found.find(kManifestName) != found.npos)
        << i << ": " << found;
  }
}

// With a valid checksum, any content is possible; an error is the worst result.
TEST_F(Damage, OfAManifestThatVouchesForItselfEndsInAnErrorOrNothing) {
  const std::string front = manifest_.substr(0, manifest_.rfind(",\"crc32c\":"));
  int errors = 0;
  for (int i = 0; i < few_or_many(400, 10000); ++i) {
    std::string damage = front;
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      std::size_t at = below(damage.size());
      while (!std::isdigit(static_cast<unsigned char>(damage[at]))) at = (at + 1) % damage.size();
      damage[at] = static_cast<char>('0' + below(10));
    }
    put(folder_ / kManifestName, base::text("{},\"crc32c\":{}}}\n", damage, base::crc32c(damage)));
    errors += complaint().starts_with("error: ") ? 1 : 0;
  }
  EXPECT_GT(errors, few_or_many(400, 10000) / 4);
}

TEST_F(Damage, NoNameOfATensorIsAPath) {
  const fs::path other = folder_ / "other";
  fs::create_directories(other);
  for (StateEntry& entry : entries_) entry.name = "../" + entry.name;
  const Manifest manifest = write_shard(other, 0, entries_, read_tensors(*bench_.stream, entries_));
  put(other / kManifestName, manifest_text(manifest));
  const Manifest read = read_manifest(other);
  StateReader reader(read, other);
  for (const StateEntry& entry : entries_) EXPECT_NO_THROW(reader.read(*bench_.stream, entry));
  const auto files = [](const fs::path& folder) {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  };
  EXPECT_EQ(files(other), 2);
  EXPECT_EQ(files(folder_), 3) << "its own two and the other folder";
}

TEST_F(Damage, OfAFileThatIsGoneOrIsAFolderIsNamed) {
  fs::remove(shard_);
  EXPECT_NE(complaint().find("rank_0.safetensors"), std::string::npos);
  fs::create_directories(shard_);
  EXPECT_NE(complaint().find("rank_0.safetensors"), std::string::npos);
}

}  // namespace damage_test
}  // namespace weft::checkpoint
