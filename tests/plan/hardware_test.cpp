#include "weft/plan/hardware/hardware.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/config/codec.h"
#include "weft/derive/gpu.h"

namespace weft::plan {
namespace hardware_test {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(WEFT_SOURCE_DIR) / "hardware";

std::string content_of(const std::string& gpu) {
  return base::read_text(kFolder / (gpu + ".yaml"));
}

std::string replaced(std::string content, const std::string& key, const std::string& line) {
  const std::size_t begin = content.find("\n" + key + ":") + 1;
  return content.replace(begin, content.find('\n', begin) - begin, line);
}

std::string complaint_of(const std::string& content) {
  try {
    parse_hardware(content, "x.yaml");
  } catch (const base::ConfigError& error) {
    return base::text("{}", fmt::join(error.complaints(), "\n"));
  }
  return "";
}

TEST(Hardware, EveryFileIsWholeAndSaysWhereItsNumbersComeFrom) {
  const std::vector<std::string> known = known_hardware(kFolder);
  for (const char* gpu : {"h100", "h200", "b200", "b300", "gb200", "gb300"}) {
    EXPECT_NE(std::ranges::find(known, gpu), known.end()) << gpu;
  }
  for (const std::string& name : known) {
    const Hardware hardware = find_hardware(kFolder, name);
    EXPECT_EQ(hardware.name, name);
    EXPECT_FALSE(hardware.summary.empty());
    EXPECT_GT(hardware.gemm_rate(DType::BF16), 0);
    EXPECT_LT(hardware.gemm_rate(DType::BF16), hardware.peak(DType::BF16));
    EXPECT_NE(content_of(name).find("As advertised"), std::string::npos);
  }
}

// weft memory, check and train judge by the facts, weft plan by the files: memory and reserve must
// agree.
TEST(Hardware, TheFilesHaveTheMemoryAndTheReserveThatRunsAreJudgedBy) {
  const auto words = config::EnumWords<config::Gpu>::words;
  for (const std::string& name : known_hardware(kFolder)) {
    const auto word = std::ranges::find(words, name);
    ASSERT_NE(word, words.end()) << name;
    config::HardwareConfig named;
    named.gpu = static_cast<config::Gpu>(word - words.begin());
    const derive::GpuFacts facts = derive::gpu_facts(named);
    const Hardware hardware = find_hardware(kFolder, name);
    EXPECT_EQ(hardware.memory_gb, facts.memory_gb) << name;
    EXPECT_EQ(hardware.reserved_gb, derive::reserved_gb(facts.major)) << name;
    EXPECT_EQ(derive::usable_bytes(facts),
              std::llround((hardware.memory_gb - hardware.reserved_gb) * 1e9))
        << name;
    EXPECT_EQ(hardware.host_memory_gb * hardware.gpus_per_node, facts.host_memory_gb) << name;
    EXPECT_EQ(hardware.gpus_per_node, facts.gpus_per_node) << name;
    EXPECT_EQ(hardware.nvlink_domain, facts.nvlink_domain) << name;
    EXPECT_EQ(hardware.host_memory_free, derive::kHostMemoryFree) << name;
  }
}

TEST(Hardware, AMissingNumberIsNamed) {
  EXPECT_EQ(complaint_of(replaced(content_of("h100"), "nic_gbps", "")),
            "x.yaml: a number is missing: nic_gbps");
}

TEST(Hardware, TheDeviceIsAGpuOrProcessorCores) {
  EXPECT_EQ(find_hardware(kFolder, "h100").device, config::DeviceKind::Cuda);
  EXPECT_EQ(parse_hardware(replaced(content_of("h100"), "device", "device: cpu"), "x").device,
            config::DeviceKind::Cpu);
  EXPECT_NE(complaint_of(replaced(content_of("h100"), "device", "device: tpu"))
                .find("device = 'tpu': cuda and cpu are possible"),
            std::string::npos);
  EXPECT_EQ(complaint_of(replaced(content_of("h100"), "device", "")),
            "x.yaml: a number is missing: device");
}

TEST(Hardware, AnAbsurdNumberIsNamedWithItsLineAndRange) {
  const std::string said =
      complaint_of(replaced(content_of("h100"), "memory_share", "memory_share: 40"));
  EXPECT_NE(said.find("memory_share = 40 is out of range: 0.01 to 1"), std::string::npos) << said;
  EXPECT_EQ(said.find("x.yaml:"), 0u) << said;
  EXPECT_NE(complaint_of(replaced(content_of("h100"), "sms", "sms: nan")), "");
  EXPECT_NE(complaint_of(replaced(content_of("h100"), "sms", "sms: many")).find("not a number"),
            std::string::npos);
}

TEST(Hardware, NumbersThatContradictEachOtherAreNamed) {
  const auto said = [](const char* key, const char* line) {
    return complaint_of(replaced(content_of("h100"), key, line));
  };
  const std::tuple<const char*, const char*, const char*> wrong[] = {
      {"reserved_gb", "reserved_gb: 90", "reserved_gb = 90 leaves nothing of memory_gb"},
      {"memory_gb", "memory_gb: 80000", "memory_gb = 80000 is out of range"},
      {"sms", "sms: 132.5", "sms = 132.5 is not a whole number"},
      {"nvlink_domain", "nvlink_domain: 3", "one is a multiple of the other"},
      {"nic_gbps", "nic_gbps: 400", "gigabytes a second: 400 Gb/s are 50"},
      {"nvlink_gbps", "nvlink_gbps: 20", "nic_gbps = 50 is more than nvlink_gbps = 20"},
      {"peak_fp8_tflops", "peak_fp8_tflops: 10", "less than peak_bf16_tflops"},
      {"gemm_share_fp8", "gemm_share_fp8: 0", "gemm_share_fp8 is not"}};
  for (const auto& [key, line, words] : wrong) {
    EXPECT_NE(said(key, line).find(words), std::string::npos) << line << ": " << said(key, line);
  }
  EXPECT_EQ(said("nvlink_domain", "nvlink_domain: 4"), "");
  EXPECT_EQ(said("nvlink_domain", "nvlink_domain: 16"), "");
}

TEST(Hardware, TheHostIsHeldAgainstItsRangesAndIsThatOfTheEngine) {
  EXPECT_NE(complaint_of(replaced(content_of("h100"), "host_memory_gb", "host_memory_gb: -1"))
                .find("host_memory_gb = -1 is out of range"),
            std::string::npos);
  EXPECT_NE(complaint_of(replaced(content_of("h100"), "host_link_share", "host_link_share: 3"))
                .find("host_link_share = 3 is out of range: 0.01 to 1"),
            std::string::npos);
  for (const std::string& name : known_hardware(kFolder)) {
    config::HardwareConfig gpu;
    gpu.gpu = config::WordCodec<config::Gpu>::parse(name);
    const Hardware hardware = find_hardware(kFolder, name);
    const derive::GpuFacts facts = derive::gpu_facts(gpu);
    EXPECT_EQ(hardware.host_link_gbps, facts.host_gbps) << name;
    EXPECT_EQ(hardware.host_link_share, derive::kReachedOfHostLink) << name;
    EXPECT_EQ(hardware.host_memory_gbps, facts.host_memory_gbps) << name;
    EXPECT_EQ(hardware.host_memory_share, derive::kReachedOfHostMemory) << name;
  }
}

TEST(Hardware, AnUnknownKeyHasAHintAndATwiceGivenOneIsRefused) {
  EXPECT_NE(complaint_of(content_of("h100") + "nic_gbp: 3\n").find("did you mean 'nic_gbps'?"),
            std::string::npos);
  EXPECT_NE(complaint_of(content_of("h100") + "sms: 3\n").find("given twice"), std::string::npos);
}

TEST(Hardware, AnUnknownGpuListsTheKnownOnes) {
  try {
    find_hardware(kFolder, "h1000");
    FAIL() << "found";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("b200, b300, gb200, gb300, h100, h200"),
              std::string::npos)
        << error.what();
  }
}

TEST(Hardware, NamesAreKnownInAnyLettersAndAFolderWithoutFilesIsNamed) {
  EXPECT_EQ(find_hardware(kFolder, "H100").name, find_hardware(kFolder, "h100").name);
  try {
    find_hardware("/nowhere", "h100");
    FAIL() << "found";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'/nowhere', which WEFT_HARDWARE sets"),
              std::string::npos)
        << error.what();
  }
}

TEST(Hardware, ACalibrationIsToldFromAHardwareFile) {
  const fs::path file = fs::temp_directory_path() / base::text("weft_here_{}.json", getpid());
  base::write_whole(file, "{\"rates\": {}}\n");
  try {
    find_hardware(kFolder, file.string());
    ADD_FAILURE() << "taken";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("weft schedule RECIPE --calibration="),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("weft calibrate RECIPE --hardware="),
              std::string::npos)
        << error.what();
  }
  fs::remove(file);
}

TEST(Hardware, CalibratedNumbersAreReplacedAndNothingElse) {
  const std::string content = content_of("gb200");
  Hardware hardware = parse_hardware(content, "gb200.yaml");
  EXPECT_EQ(with_calibrated(content, hardware), content);
  hardware.launch_us = 12.5;
  hardware.sms = 1;
  const Hardware again = parse_hardware(with_calibrated(content, hardware), "gb200.yaml");
  EXPECT_EQ(again.launch_us, 12.5);
  EXPECT_EQ(again.sms, 148);
}

}  // namespace hardware_test
}  // namespace weft::plan
