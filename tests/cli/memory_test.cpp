// weft memory: its numbers equal the run's, and predicted savings equal real ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/program_support.h"
#include "tests/soak.h"
#include "tests/trace/xml_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace memory_test {

using Json = base::Json;

const std::string kRun =
    "memory tiny world=2 pp=2 vpp=1 ep=1 train.eval_interval=0 dataset.kind=mock ";

Json memory(const std::string& words) {
  const Outcome outcome = weft(words + " --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

std::string joined(const Json& words) {
  std::string all;
  for (const Json& word : words) all += " '" + word.get<std::string>() + "'";
  return all;
}

TEST(MemoryCommand, PiecesAddUpToThePeak) {
  const Json json = memory(kRun);
  ASSERT_EQ(json["ranks"].size(), 2u);
  for (const Json& rank : json["ranks"]) {
    std::size_t by_piece = 0, by_tag = 0;
    for (const Json& piece : rank["pieces"]) by_piece += piece["bytes"].get<std::size_t>();
    for (const Json& bytes : rank["tags"]) by_tag += bytes.get<std::size_t>();
    EXPECT_EQ(by_piece, rank["peak_bytes"]);
    EXPECT_EQ(by_tag, rank["peak_bytes"]);
    EXPECT_FALSE(rank["node"].get<std::string>().empty());
  }
}

TEST(MemoryCommand, ASavingTakenFreesWhatWasSaid) {
  const Json json = memory(kRun);
  const Json& savings = json["savings"];
  ASSERT_GE(savings.size(), 3u) << savings;
  for (const Json& saving : third_or_all(savings.get<std::vector<Json>>())) {
    const Json then = memory(kRun + joined(saving["words"]));
    EXPECT_EQ(json["peak_bytes"].get<std::int64_t>() - then["peak_bytes"].get<std::int64_t>(),
              saving["bytes"])
        << saving;
    EXPECT_GT(saving["bytes"], 0);
    for (const Json& left : then["savings"]) EXPECT_NE(left["name"], saving["name"]);
  }
}

// Savings without cost come first, the largest ahead.
TEST(MemoryCommand, SavingsComeCheapestFirst) {
  const Json savings = memory(kRun)["savings"];
  ASSERT_GE(savings.size(), 3u) << savings;
  const auto is_free = [](const Json& saving) { return saving["cost"].get<double>() <= 1e-5; };
  for (std::size_t i = 1; i < savings.size(); ++i) {
    const Json &before = savings[i - 1], &saving = savings[i];
    EXPECT_GE(is_free(before), is_free(saving)) << saving;
    const double bytes = saving["bytes"], bytes_before = before["bytes"];
    if (is_free(saving)) {
      EXPECT_GE(bytes_before, bytes) << saving;
    } else if (!is_free(before)) {
      const double cost = saving["cost_ms"], cost_before = before["cost_ms"];
      EXPECT_GE(bytes_before / cost_before, bytes / cost) << saving;
    }
  }
}

// An unknown GPU is not priced as a CPU.
TEST(MemoryCommand, PricesNoCardThatIsNotNamed) {
  const Outcome text = weft("memory tiny runtime.device=cuda");
  const bool is_here = text.err.find("hardware.gpu=") != text.err.npos;
  EXPECT_TRUE(is_here || text.out.find("set hardware.gpu=NAME") != text.out.npos) << text.out;
  EXPECT_EQ(text.out.find("nominal costs: 1 TFLOP/s"), text.out.npos);
  if (is_here) return;
  const Json json = Json::parse(weft("memory --json tiny runtime.device=cuda").out);
  ASSERT_FALSE(json["savings"].empty());
  EXPECT_TRUE(json["savings"][0]["cost"].is_null()) << json["savings"][0];
}

TEST(MemoryCommand, SaysWhatMakesARunFit) {
  const std::string words =
      "tiny world=8 ep=8 vpp=1 dataset.kind=mock train.eval_interval=0 model.num_layers=8 "
      "model.hidden_size=4096 model.num_moe_experts=64 gbs=32 mbs=4 "
      "model.moe_ffn_hidden_size=4096 model.seq_length=4096 hardware.gpu=h100 "
      "runtime.device=cuda model.bf16=true";
  const Outcome outcome = weft("memory --json " + words);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["fits"], false);
  ASSERT_TRUE(json["fit"].is_object()) << json["savings"] << json["peak_bytes"];
  EXPECT_LE(json["fit"]["peak_bytes"], 79.9e9) << "5 GB are left for CUDA and its libraries";
  EXPECT_EQ(json["gpu"]["reserved_bytes"], 5e9);
  const Outcome fitting = weft("memory --json " + words + joined(json["fit"]["words"]));
  EXPECT_EQ(fitting.code, 0) << fitting.err;
  EXPECT_EQ(Json::parse(fitting.out)["peak_bytes"], json["fit"]["peak_bytes"]);
  for (const char* command : {"check --memory --json ", "check --json "}) {
    const Outcome check = weft(command + words);
    EXPECT_EQ(check.code, 1) << check.err;
    const Json limit = Json::parse(check.out)["limits"].back();
    const std::string fix = limit["fix"];
    ASSERT_EQ(limit["savings"].size(), 2u) << limit;
    EXPECT_EQ(limit["savings"][0]["name"], json["savings"][0]["name"]);
    EXPECT_EQ(limit["savings"][0]["words"], json["savings"][0]["words"]);
    EXPECT_EQ(limit["savings"][0]["bytes"], json["savings"][0]["bytes"]);
    EXPECT_EQ(limit["fit"], json["fit"]);
    EXPECT_NE(fix.find(json["savings"][0]["name"].get<std::string>() + " frees"), fix.npos) << fix;
    const std::size_t second = fix.find(" frees ", fix.find(" frees ") + 1);
    EXPECT_NE(second, fix.npos) << fix;
    EXPECT_EQ(fix.find(" frees ", second + 1), fix.npos) << "two are named: " << fix;
    EXPECT_NE(fix.find("makes it fit"), fix.npos) << fix;
  }
}

// The line behind the program's and the last one give the verdict, and the parts of the run that
// are not counted.
TEST(MemoryCommand, AVerdictComesFirstAndLast) {
  const Outcome outcome = weft(kRun + "hardware.gpu=h100 runtime.device=cuda");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> lines = base::split(outcome.out, '\n');
  EXPECT_EQ(lines[0], "memory as Weft runs it");
  EXPECT_TRUE(lines[1].starts_with("fits NVIDIA H100 80GB HBM3: 74.4 GiB to spare of 74.4"))
      << outcome.out;
  EXPECT_EQ(lines[1], lines[lines.size() - 2]);
  EXPECT_EQ(lines[1].find("not counted"), std::string::npos) << lines[1];
  const Outcome without =
      weft(kRun + "hardware.gpu=h100 runtime.device=cuda model.mtp_num_layers=1");
  const std::vector<std::string> parts = base::split(without.out, '\n');
  ASSERT_GT(parts.size(), 1u) << without.err;
  EXPECT_NE(parts[1].find("not counted: multi-token"), std::string::npos) << parts[1];
}

TEST(MemoryCommand, TinyIsToldAsEver) {
  const Outcome outcome = weft(kRun);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, base::read_text(WEFT_SOURCE_DIR "/tests/golden/memory_tiny.txt"));
}

// Positions of the labels at the left of a picture.
std::vector<std::string> heights_of_levels(const std::string& svg) {
  const std::string begin = "<text class=\"r\" ";
  std::vector<std::string> heights;
  for (std::size_t at = svg.find(begin); at != svg.npos; at = svg.find(begin, at + 1)) {
    const std::size_t y = svg.find("y=\"", at) + 3;
    heights.push_back(svg.substr(y, svg.find('"', y) - y));
  }
  return heights;
}

TEST(MemoryCommand, DrawsThePictureOrSaysWhyNot) {
  const auto file =
      std::filesystem::temp_directory_path() / base::text("weft_memory_{}.svg", ::getpid());
  EXPECT_EQ(weft(kRun + "--svg=" + file.string()).code, 0);
  const std::string svg = base::read_text(file);
  std::filesystem::remove(file);
  EXPECT_EQ(trace::find_fault(svg), "");
  EXPECT_NE(svg.find("pp rank 1: peak"), svg.npos);
  EXPECT_EQ(weft(kRun + "hardware.gpu=h100 runtime.device=cuda --svg=" + file.string()).code, 0);
  const std::string with_room = base::read_text(file);
  std::filesystem::remove(file);
  EXPECT_EQ(heights_of_levels(with_room).size(), 2u) << "one label a rank: the GPU's";
  const Outcome nowhere = weft(kRun + "--svg=/nowhere/at/all.svg");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_EQ(nowhere.out, "");
}

TEST(MemoryCommand, RefusesWhatIsNoRun) {
  EXPECT_EQ(weft("memory no_such_recipe").code, 2);
  EXPECT_EQ(weft("memory tiny model.hidden_sizes=4").code, 2);
  EXPECT_EQ(weft("memory tiny world=3 pp=2").code, 2);
  EXPECT_EQ(weft("memory tiny --svg").code, 2);
}

}  // namespace memory_test
}  // namespace weft::cli
