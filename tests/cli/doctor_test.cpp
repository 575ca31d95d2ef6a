#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "tests/cli/program_support.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/comm/launch.h"
#include "weft/kernels/device.h"
#include "weft/kernels/onednn_report.h"

namespace weft::cli {
namespace doctor_test {

using base::Json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Json examine(const std::string& environment = "") {
  const Outcome outcome = weft("doctor --json", environment);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return Json::parse(outcome.out);
}

// First element of a list with member `key` equal to `value`; null: none.
Json find(const Json& list, const char* key, const std::string& value) {
  for (const Json& each : list) {
    if (each.at(key) == value) return each;
  }
  return {};
}

TEST(Doctor, NamesTheDevicesAndTheLibraries) {
  const Json found = examine();
  const Json cpu = found.at("devices").at(0);
  EXPECT_EQ(cpu.at("kind"), "cpu");
  EXPECT_EQ(cpu.at("usable"), true);
  EXPECT_GT(cpu.at("cores"), 0);
  EXPECT_GT(cpu.at("memory_bytes"), 0);
  for (const char* name : {"OpenBLAS",
                           "oneDNN",
                           "Open MPI",
                           "libweft_cuda.so",
                           "libweft_nccl.so",
                           "NVIDIA driver",
                           "CUDA runtime",
                           "cuBLASLt",
                           "cuDNN",
                           "NCCL"}) {
    const Json library = find(found.at("libraries"), "name", name);
    ASSERT_TRUE(library.is_object()) << name;
    EXPECT_TRUE(library.at("found").is_boolean()) << name;
    EXPECT_TRUE(library.at("version").is_null() || library.at("found") == true) << name;
  }
  EXPECT_EQ(find(found.at("libraries"), "name", "OpenBLAS").at("found"), true);
}

// Library that computes products, oneDNN or OpenBLAS; the other one gives the reason.
std::string product_library(const Json& found) {
  std::string result;
  for (const char* name : {"OpenBLAS", "oneDNN"}) {
    const Json library = find(found.at("libraries"), "name", name);
    const std::string use = library.at("use");
    const bool used = library.at("found") == true && use.starts_with("products on a CPU");
    if (used) result += name;
    EXPECT_TRUE(used || library.at("found") == false || contains(use, "not used here: ")) << use;
  }
  return result;
}

TEST(Doctor, SaysWhichLibraryComputesProducts) {
  const bool onednn = kernels::onednn_report().why_not.empty();
  EXPECT_EQ(product_library(examine()), onednn ? "oneDNN" : "OpenBLAS");
  const Json without = examine("DNNL_MAX_CPU_ISA=AVX2");
  EXPECT_EQ(product_library(without), "OpenBLAS");
  const std::string use = find(without.at("libraries"), "name", "OpenBLAS").at("use");
  EXPECT_TRUE(contains(use, ", with kernels for ")) << use;
}

TEST(Doctor, EveryLimitHasAReasonAndAWayOut) {
  const Json found = examine();
  for (const Json& limit : found.at("limits")) {
    for (const char* key : {"what", "message", "fix"}) {
      EXPECT_FALSE(limit.at(key).get<std::string>().empty()) << limit;
    }
  }
}

TEST(Doctor, SaysWhyThereIsNoGpuOrShowsIt) {
  const kernels::GpuReport report = kernels::gpu_report();
  EXPECT_EQ(report.gpus.empty(), !report.why_none.empty()) << report.why_none;
  const Json found = examine();
  EXPECT_EQ(find(found.at("devices"), "kind", "cuda").is_object(), !report.gpus.empty());
  EXPECT_EQ(find(found.at("limits"), "what", "runtime.device=cuda").is_object(),
            report.gpus.empty());
}

TEST(Doctor, SaysWhyTheCudaDeviceDoesWithoutCudnnExactlyWhereItDoes) {
  const kernels::GpuReport report = kernels::gpu_report();
  const Json limit =
      find(examine().at("limits"), "what", "attention by cuDNN (a slower kernel computes it)");
  EXPECT_EQ(limit.is_object(), !report.why_no_cudnn.empty()) << report.why_no_cudnn;
}

TEST(Doctor, SaysThatTheGpusAreHidden) {
  if (kernels::gpu_report().gpus.empty()) GTEST_SKIP() << kernels::gpu_report().why_none;
  const Json hidden = examine("CUDA_VISIBLE_DEVICES=");
  const Json limit = find(hidden.at("limits"), "what", "runtime.device=cuda");
  ASSERT_TRUE(limit.is_object()) << hidden;
  EXPECT_TRUE(contains(limit.at("fix"), "CUDA_VISIBLE_DEVICES")) << limit;
}

TEST(Doctor, SaysThatMpiIsMissingExactlyWhereItIs) {
  const auto limit = [](const Json& found) {
    return find(found.at("limits"), "what", "runtime.backend=mpi");
  };
  EXPECT_TRUE(limit(examine("PATH=/nowhere")).is_object());
  if (!comm::has_mpi()) {
    EXPECT_TRUE(contains(limit(examine()).at("fix"), "libopenmpi-dev"));
  }
}

TEST(Doctor, NamesNeitherTheMachineNorItsOwner) {
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  const std::filesystem::path folder = std::filesystem::path(WEFT_BINARY).parent_path();
  for (const char* arguments : {"doctor", "doctor --json"}) {
    const std::string said = weft(arguments).out;
    // A short host name may occur in the text by chance.
    if (std::strlen(host.data()) > 5) {
      EXPECT_FALSE(contains(said, host.data())) << said;
    }
    EXPECT_FALSE(contains(said, folder.string())) << said;
  }
}

TEST(Doctor, TextBeginsWithWhatWorks) {
  const Outcome text = weft("doctor");
  ASSERT_EQ(text.code, 0) << text.err;
  const std::size_t works = text.out.find("\nWorks here:\n  CPU ");
  const std::size_t fails = text.out.find("\nDoes not run here:\n");
  EXPECT_NE(works, std::string::npos) << text.out;
  EXPECT_TRUE(fails == std::string::npos || works < fails) << text.out;
}

}  // namespace doctor_test
}  // namespace weft::cli
