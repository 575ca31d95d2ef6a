#include <gtest/gtest.h>

#include "tests/meta/layers_support.h"
#include "weft/base/files/file.h"

namespace weft::meta {
namespace layers_test {

constexpr const char* kExample =
    "# who: whom\n"
    "base:\n"
    "comm: base\n"
    "exec/real: base comm\n";

Complaints judge(const std::string& path, const std::string& text) {
  return include_complaints(parse_layers(kExample), {.path = path, .text = text});
}

TEST(Layers, AModuleIsTheLongestFolderThatHasALine) {
  const Layers layers = parse_layers(kExample);
  EXPECT_EQ(module_of(layers, "exec/real/lanes.h"), "exec/real");
  EXPECT_EQ(module_of(layers, "comm/mpi/world.h"), "comm");
  EXPECT_EQ(module_of(layers, "exec/lanes.h"), "");
}

TEST(Layers, WhatTheLineAllowsPasses) {
  EXPECT_TRUE(judge("weft/exec/real/a.cpp",
                    "#include <vector>\n#include \"weft/comm/launch.h\"\n"
                    "#include \"weft/exec/real/a.h\"\n")
                  .empty());
  EXPECT_TRUE(
      judge("weft/comm/mpi/a.cpp", "#include <mpi.h>\n#include \"weft/comm/mpi/a.h\"\n").empty());
}

TEST(Layers, AnIncludeUpwardsIsNamed) {
  const Complaints found = judge("weft/base/a.h", "  # include \"weft/comm/launch.h\"\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("base may not include comm"), std::string::npos) << found[0];
}

TEST(Layers, ABackendIsIncludedOnlyFromItsFolder) {
  EXPECT_EQ(judge("weft/comm/launch.cpp", "#include \"weft/comm/mpi/world.h\"\n").size(), 1u);
  EXPECT_EQ(judge("weft/comm/fake/a.cpp", "#include \"weft/comm/mpi/world.h\"\n").size(), 1u);
}

TEST(Layers, ADevicesFolderMayIncludeTheSameDevicesFolderBelow) {
  EXPECT_TRUE(judge("weft/comm/cpu/a.cpp", "#include \"weft/base/cpu/b.h\"\n").empty());
  EXPECT_EQ(judge("weft/comm/cpu/a.cpp", "#include \"weft/base/cuda/b.h\"\n").size(), 1u);
  EXPECT_EQ(judge("weft/comm/a.cpp", "#include \"weft/base/cpu/b.h\"\n").size(), 1u);
  EXPECT_EQ(judge("weft/base/cpu/a.cpp", "#include \"weft/comm/cpu/b.h\"\n").size(), 1u);
  EXPECT_TRUE(judge("weft/comm/nccl/a.cpp", "#include \"weft/base/cuda/b.h\"\n").empty());
  EXPECT_EQ(judge("weft/comm/cuda/a.cpp", "#include \"weft/comm/nccl/b.h\"\n").size(), 1u);
}

TEST(Layers, AVendorHeaderOutsideItsFolderIsNamed) {
  EXPECT_EQ(judge("weft/comm/launch.cpp", "#include <mpi.h>\n").size(), 1u);
  EXPECT_EQ(judge("weft/base/a.cpp", "#include <cblas.h>\n").size(), 1u);
  EXPECT_EQ(judge("weft/base/cpu/a.cpp", "#include <dnnl.h>\n").size(), 1u);
}

TEST(Layers, StrangePathsAreNamed) {
  EXPECT_EQ(judge("weft/comm/a.cpp", "#include \"launch.h\"\n").size(), 1u);
  EXPECT_EQ(judge("weft/comm/a.cpp", "#include \"weft/nowhere/a.h\"\n").size(), 1u);
  EXPECT_EQ(judge("weft/nowhere/a.cpp", "").size(), 1u);
}

TEST(Layers, ACircleCannotBeWritten) {
  EXPECT_TRUE(order_complaints(kExample).empty());
  EXPECT_EQ(order_complaints("a: b\nb: a\n").size(), 1u);
  EXPECT_EQ(order_complaints("a:\na:\n").size(), 1u);
  const std::string own = base::read_text(WEFT_SOURCE_DIR "/weft/layers.txt");
  EXPECT_TRUE(order_complaints(own).empty()) << listed(order_complaints(own));
}

TEST(Layers, EveryIncludeOfTheEngineObeysThem) {
  const Layers layers = parse_layers(base::read_text(WEFT_SOURCE_DIR "/weft/layers.txt"));
  const std::vector<TextFile> files = files_below("weft", {".h", ".cpp", ".def", ".cu", ".cuh"});
  ASSERT_GT(files.size(), 100u);
  Complaints complaints;
  for (const TextFile& file : files) append(complaints, include_complaints(layers, file));
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

}  // namespace layers_test
}  // namespace weft::meta
