// Manifests are read as untrusted files.
#include "weft/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include "weft/base/crc32c.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::checkpoint {
namespace manifest_test {

Manifest example() {
  Manifest manifest{.step = 3, .samples = 24, .seed = 7, .layout = {{"world", 2}, {"ep", 2}}};
  manifest.files.push_back({.name = "rank_0.safetensors", .bytes = 1000, .header_bytes = 100});
  StoredState state{.dtype = FileDtype::F32, .shape = {4, 6}};
  const tensor::Slice slice =
      tensor::slice_of({4, 6}, {{{.begin = 0, .count = 4}}, {{.begin = 1, .count = 2}}});
  state.slices.push_back({.file = 0, .at = 104, .slice = slice, .checksums = {12}});
  manifest.states["weights/a"] = state;
  return manifest;
}

// `text` with one part replaced and a valid checksum.
std::string forged(const std::string& from, const std::string& to) {
  std::string text = manifest_text(example());
  text.resize(text.rfind(",\"crc32c\":"));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return base::text("{},\"crc32c\":{}}}\n", text, base::crc32c(text));
}

TEST(Manifest, IsReadAsItWasWritten) {
  const std::string text = manifest_text(example());
  const Manifest read = parse_manifest(text, "m");
  EXPECT_EQ(manifest_text(read), text);
  EXPECT_EQ(read.states.at("weights/a").slices[0].slice,
            example().states.at("weights/a").slices[0].slice);
  EXPECT_EQ(uncovered_state(read), "weights/a");
  EXPECT_EQ(layout_text(read), "2 ranks, ep 2");
}

TEST(Manifest, NoFlippedBitAndNoCutPasses) {
  const std::string whole = manifest_text(example());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 2);
    EXPECT_THROW(parse_manifest(damaged, "m"), base::ConfigError) << i;
    EXPECT_THROW(parse_manifest(whole.substr(0, i), "m"), base::ConfigError) << i;
  }
}

TEST(Manifest, WhatCannotBeIsRefusedWhateverItsChecksum) {
  const std::vector<std::pair<std::string, std::string>> forgeries{
      {"rank_0.safetensors", "../rank_0.safetensors"},
      {"rank_0.safetensors", "rank_../x.safetensors"},
      {"rank_0.safetensors", "rank_.safetensors"},
      {"rank_0.safetensors", "/etc/passwd"},
      {"\"bytes\":1000", "\"bytes\":-1"},
      {"\"header_bytes\":100", "\"header_bytes\":1001"},
      {"\"file\":0", "\"file\":1"},
      {"\"at\":104", "\"at\":969"},
      {"\"at\":104", "\"at\":9223372036854775807"},
      {"\"shape\":[4,6]", "\"shape\":[4,0]"},
      {"\"shape\":[4,6]", "\"shape\":[4611686018427387904,6]"},
      {"\"shape\":[4,6]", "\"shape\":[4,6,1,1,1]"},
      {"\"shape\":[4,6]", "\"shape\":[4]"},
      {"[[1,2]]", "[[1,6]]"},
      {"[[1,2]]", "[[1,2],[0,1]]"},
      {"[[1,2]]", "[[-1,2]]"},
      {"[[1,2]]", "[[1]]"},
      {"\"elements\":[0,8]", "\"elements\":[1,8]"},
      {"\"crc32c\":[12]", "\"crc32c\":[12,13]"},
      {"\"crc32c\":[12]", "\"crc32c\":[4294967296]"},
      {"\"F32\"", "\"F33\""},
      {"weft-checkpoint-1", "weft-checkpoint-2"},
      {"\"block_bytes\":1048576", "\"block_bytes\":1"},
      {"\"step\":3", "\"step\":3.5"},
      {"\"tensors\":{", "\"tensors\":{\"b\":3,"},
  };
  for (const auto& [from, to] : forgeries) {
    EXPECT_THROW(parse_manifest(forged(from, to), "m"), base::ConfigError) << from << " -> " << to;
  }
  EXPECT_NO_THROW(parse_manifest(forged("\"step\":3", "\"step\":4"), "m"));
}

// A million of them took half a minute to read.
TEST(Manifest, MoreTensorsThanAnyModelHasAreRefusedByNumber) {
  std::string tensors = "\"tensors\":{";
  for (int i = 0; i <= 1 << 17; ++i) tensors += base::text("\"{}\":0,", i);
  try {
    parse_manifest(forged("\"tensors\":{", tensors), "m");
    FAIL() << "it was read";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("more than 131072 keys"), std::string::npos)
        << error.what();
  }
}

}  // namespace manifest_test
}  // namespace weft::checkpoint
