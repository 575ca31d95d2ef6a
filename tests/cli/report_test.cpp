// weft report: runs and traces in, text, JSON and a page out.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/program_support.h"
#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace report_test {

namespace fs = std::filesystem;
using base::Json;

// One traced run for all tests, on an emulated fabric so that its communication is seen.
class ReportCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / base::text("weft_report_{}", ::getpid());
    fs::create_directories(folder_);
    const Outcome run = weft(
        "train tiny world=2 ep=2 gbs=8 train.train_iters=4 train.eval_interval=0 dataset.kind=mock "
        "fabric.intra_node_gb_per_second=0.2 runtime.trace=true runtime.run_dir=" +
        run_folder());
    ASSERT_EQ(run.code, 0) << run.err << run.out;
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static std::string run_folder() { return (folder_ / "run").string(); }
  static std::string file(const std::string& name) { return (folder_ / name).string(); }
  static Json report(const std::string& path) {
    const Outcome outcome = weft("report --json " + path);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }

  static inline fs::path folder_;
};

double sum_of(const Json& walls) {
  double sum = 0;
  for (const char* part : {"compute_ms",
                           "communication_ms",
                           "late_ms",
                           "bubble_ms",
                           "host_ms",
                           "copy_ms",
                           "idle_ms"}) {
    sum += walls[part].get<double>();
  }
  return sum;
}

TEST_F(ReportCommand, OfARunSaysWhereItWentAndWhatIsNext) {
  const Json json = report(run_folder());
  EXPECT_EQ(json["kind"], "run");
  EXPECT_EQ(json["traced_steps"], 2);
  EXPECT_NEAR(sum_of(json["walls"]), json["walls"]["step_ms"], 1e-6);
  // What the run itself wrote of its exposure.
  const Json exposure = Json::parse(base::read_text(run_folder() + "/exposure.json"));
  for (const auto& [kind, time] : exposure["kinds"].items()) {
    for (const char* key : {"communication_ms", "hidden_any", "hidden_gemm", "exposed_ms"}) {
      EXPECT_NEAR(json["exposed"][kind][key], time[key].get<double>(), 1e-6) << kind << key;
    }
    for (const auto& [reason, ms] : time["reasons"].items()) {
      EXPECT_NEAR(json["exposed"][kind]["reasons"][reason], ms.get<double>(), 1e-6) << reason;
    }
  }
  EXPECT_EQ(json["loads"].size(), 4u);
  ASSERT_TRUE(json["memory"].is_object());
  EXPECT_EQ(json["memory"]["ranks"].size(), 1u);
  ASSERT_TRUE(json["comparison"].is_object()) << json["notes"];
  EXPECT_GT(json["comparison"]["pieces"].size(), 10u);
  EXPECT_GT(json["comparison"]["step"]["predicted_ms"], 0);
  ASSERT_FALSE(json["next"].empty());
  EXPECT_LE(json["next"].size(), 3u);
  for (const Json& one : json["next"]) {
    EXPECT_GE(one["gain"].get<double>(), 0.01) << one;
    EXPECT_LT(one["gain"].get<double>(), 1) << one;
    EXPECT_FALSE(one["rule"].get<std::string>().empty());
  }
}

TEST_F(ReportCommand, PredictsByACalibrationWhereItHasOne) {
  const Json nominal = report(run_folder())["comparison"];
  EXPECT_NE(nominal["costs"].get<std::string>().find("no calibration"), std::string::npos);
  const Outcome made = weft("calibrate tiny world=2 ep=2 gbs=8 --out=" + file("here.json"));
  ASSERT_EQ(made.code, 0) << made.err;
  const Json told = report(run_folder() + " --calibration=" + file("here.json"))["comparison"];
  EXPECT_TRUE(told["costs"].get<std::string>().starts_with("by the calibration")) << told["costs"];
  EXPECT_NE(told["step"]["predicted_ms"], nominal["step"]["predicted_ms"]);
  EXPECT_EQ(told["nodes"].size(), nominal["nodes"].size());
  const Outcome wrong =
      weft("report " + run_folder() + " --calibration=" + run_folder() + "/config.yaml");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("no calibration of"), std::string::npos) << wrong.err;
}

TEST_F(ReportCommand, ATraceAloneHasTheSameTimes) {
  const Json run = report(run_folder()), trace = report(run_folder() + "/trace.json");
  EXPECT_EQ(trace["kind"], "trace of Weft");
  EXPECT_EQ(trace["walls"], run["walls"]);
  EXPECT_EQ(trace["exposed"], run["exposed"]);
  EXPECT_TRUE(trace["memory"].is_null());
  EXPECT_EQ(trace["next"].dump().find("cuda_graph"), std::string::npos) << trace["next"];
}

TEST_F(ReportCommand, ADamagedTraceTakesNothingElseOfTheRunWithIt) {
  const std::string other = file("damaged");
  fs::create_directories(other);
  for (const char* name : {"config.yaml", "metrics.jsonl"}) {
    fs::copy_file(fs::path(run_folder()) / name, fs::path(other) / name);
  }
  const std::string whole = base::read_text(run_folder() + "/trace.json");
  base::write_whole(other + "/trace.json", whole.substr(0, whole.size() / 2));
  const Json json = report(other);
  EXPECT_EQ(json["traced_steps"], 0);
  EXPECT_GT(json["steps"]["median_ms"], 0);
  EXPECT_NE(json["notes"].dump().find("left out: "), std::string::npos) << json["notes"];
}

TEST_F(ReportCommand, GainsOfASimulatedStepAreSimulatedFromItsNodes) {
  const std::string trace = file("simulated.json");
  const Outcome made =
      weft("plan --simulate qwen3_30b_a3b gbs=64 ep=16 world=16 --gpu=h100 --trace=" + trace +
           " comm_overlap.overlap_moe_expert_parallel_comm=false "
           "comm_overlap.delay_wgrad_compute=false --json");
  ASSERT_TRUE(fs::exists(trace)) << made.err;
  const Json json = report(trace);
  EXPECT_EQ(json["kind"], "simulated trace of Weft");
  EXPECT_TRUE(json["comparison"].is_null());
  ASSERT_FALSE(json["next"].empty());
  bool is_simulated = false;
  for (const Json& one : json["next"]) {
    const bool is_overlap = one["change"] == "comm_overlap.overlap_moe_expert_parallel_comm=true";
    if (!is_overlap) continue;
    is_simulated = one["basis"] == "simulated";
    // What weft plan prices is 34 % more throughput, with what travels slowing compute down.
    EXPECT_GT(one["gain"].get<double>(), 0.15) << one;
    EXPECT_LT(one["gain"].get<double>(), 0.45) << one;
  }
  EXPECT_TRUE(is_simulated) << json["next"];
}

TEST_F(ReportCommand, TextNamesEveryPart) {
  const Outcome outcome = weft("report " + run_folder());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"time by wall",
                           "communication by kind",
                           "memory, predicted",
                           "expert loads",
                           "predicted beside measured",
                           "dominant wall: ",
                           "next, one at a time"}) {
    EXPECT_NE(outcome.out.find(part), outcome.out.npos) << part << outcome.out;
  }
}

TEST_F(ReportCommand, ARunWithoutATraceTellsWhatItCan) {
  const std::string other = file("untraced");
  fs::create_directories(other);
  for (const char* name : {"config.yaml", "metrics.jsonl"}) {
    fs::copy_file(fs::path(run_folder()) / name, fs::path(other) / name);
  }
  const Json json = report(other);
  EXPECT_EQ(json["traced_steps"], 0);
  EXPECT_GT(json["steps"]["median_ms"], 0);
  for (const char* unknown : {"wall", "walls", "exposed", "exposed_total"}) {
    EXPECT_TRUE(json[unknown].is_null()) << unknown << ": " << json[unknown];
  }
  EXPECT_EQ(json["next"][0]["change"], "runtime.trace=true");
  EXPECT_EQ(json["loads"].size(), 4u);
}

TEST_F(ReportCommand, ATraceOfAnotherRunIsNotedNotBelieved) {
  const std::string other = file("mixed");
  fs::create_directories(other);
  fs::copy_file(run_folder() + "/config.yaml", other + "/config.yaml");
  base::write_whole(other + "/trace.json",
                    R"([{"ph":"X","cat":"node","name":"x","pid":9,"tid":0,"ts":0,"dur":5,)"
                    R"("args":{"node":"no node","run":0}}])");
  const Json json = report(other);
  EXPECT_TRUE(json["comparison"].is_null());
  EXPECT_NE(json["notes"].dump().find("does not fit the run's schedule"), std::string::npos)
      << json["notes"];
}

TEST_F(ReportCommand, RefusesWhatIsNoRunOrTrace) {
  EXPECT_EQ(weft("report").code, 2);
  EXPECT_EQ(weft("report " + file("nothing")).code, 2);
  const Outcome folder = weft("report " + folder_.string());
  EXPECT_EQ(folder.code, 2);
  EXPECT_NE(folder.err.find("no config.yaml"), folder.err.npos) << folder.err;
  const std::string cut = file("cut.json"), whole = base::read_text(run_folder() + "/trace.json");
  base::write_whole(cut, whole.substr(0, whole.size() / 2));
  const Outcome outcome = weft("report " + cut);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("cut.json: byte "), outcome.err.npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(weft("report --html=/nowhere/at/all.html " + run_folder()).code, 1);
}

// A page in a browser without a window, with `driver` run after its own script; gives the page as
// it then is. Empty: there is no such browser.
std::string browsed(const std::string& page, const std::string& driver, const fs::path& folder) {
  const std::string copy = (folder / "driven.html").string();
  std::string content = base::read_text(page);
  content.insert(content.rfind("</body>"), "<script>" + driver + "</script>");
  base::write_whole(copy, content);
  const Outcome outcome = shell(
      "bash",
      "browser=$(command -v chromium || command -v chromium-browser) || exit 77\n"
      "timeout 120 \"$browser\" --headless --no-sandbox --disable-gpu --user-data-dir='" +
          (folder / "browser").string() +
          "' --virtual-time-budget=4000 --window-size=1200,900 --dump-dom 'file://" + copy + "'");
  return outcome.code == 77 ? "" : outcome.out;
}

std::string title_of(const std::string& page) {
  const std::size_t begin = page.find("<title>"), end = page.find("</title>");
  return begin == page.npos || end == page.npos ? "" : page.substr(begin + 7, end - begin - 7);
}

// What the driver found, as a title that needs no escapes.
const std::string kAnswer =
    "document.title = JSON.stringify(answer).replaceAll('<', '(').replaceAll('>', ')');";

TEST_F(ReportCommand, ThePageDrawsZoomsAndChangesItsTheme) {
  const std::string page = file("report.html");
  ASSERT_EQ(weft("report " + run_folder() + " --html=" + page).code, 0);
  const std::string driver = R"JS(
    const answer = {ready: document.documentElement.dataset.ready};
    const canvas = document.getElementById("timeline"), where = () => document.getElementById("view").textContent;
    const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
    answer.drawn = +canvas.dataset.drawn;
    answer.all = where();
    key("+"); answer.zoomed = where();
    key("ArrowRight"); answer.moved = where();
    key("Home"); answer.home = where();
    key("n"); answer.span = document.getElementById("span").textContent;
    canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -400, clientX: 600, clientY: 300, cancelable: true}));
    answer.wheel = where();
    const back = () => getComputedStyle(document.body).backgroundColor;
    const before = back();
    document.getElementById("theme").click();
    answer.themes = [before, back()];
    location.hash = "#from=1&to=2&theme=dark";
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    answer.address = where();
    answer.theme = document.documentElement.dataset.theme;
    answer.sections = [...document.querySelectorAll("section")].filter((one) => one.hidden).map((one) => one.id);
    answer.paths = document.querySelectorAll("#memory path").length;
  )JS" + kAnswer;
  const std::string seen = browsed(page, driver, folder_);
  if (seen.empty()) GTEST_SKIP() << "skipped: no chromium to open the page in";
  const Json answer = Json::parse(title_of(seen), nullptr, false);
  ASSERT_TRUE(answer.is_object()) << seen.substr(0, 2000);
  EXPECT_EQ(answer["ready"], "yes");
  EXPECT_GT(answer["drawn"], 50);
  EXPECT_NE(answer["zoomed"], answer["all"]);
  EXPECT_NE(answer["moved"], answer["zoomed"]);
  EXPECT_EQ(answer["home"], answer["all"]);
  EXPECT_NE(answer["wheel"], answer["all"]);
  EXPECT_NE(answer["span"].get<std::string>().find(" ms long"), std::string::npos) << answer;
  EXPECT_NE(answer["themes"][0], answer["themes"][1]);
  EXPECT_EQ(answer["address"], "1.000 to 2.000 ms");
  EXPECT_EQ(answer["theme"], "dark");
  EXPECT_TRUE(answer["sections"].size() <= 1) << answer["sections"];  // notes, where there are none
  EXPECT_GT(answer["paths"], 6);
}

TEST_F(ReportCommand, APageOfHostileNamesStaysAPage) {
  const std::string trace = file("hostile.json"), page = file("hostile.html");
  const std::string evil =
      R"(</script><script>document.documentElement.dataset.evil='yes'</script>)"
      R"(<img src=x onerror=\"document.documentElement.dataset.evil='yes'\">)";
  base::write_whole(
      trace,
      base::text(R"([{{"ph":"X","cat":"kernel","name":"{0}","pid":0,"tid":7,"ts":1,"dur":5,)"
                 R"("args":{{"stream":7,"Collective name":"{0}"}}}},)"
                 R"({{"ph":"X","cat":"kernel","name":"nccl {0}","pid":0,"tid":8,"ts":6,"dur":5,)"
                 R"("args":{{"stream":8,"Process Group Description":"{0}"}}}}])",
                 evil));
  ASSERT_EQ(weft("report " + trace + " --html=" + page).code, 0);
  const std::string content = base::read_text(page);
  EXPECT_EQ(content.find("</script><script>document"), content.npos);
  EXPECT_EQ(content.find("<img"), content.npos);
  const std::string driver =
      "const answer = {ready: document.documentElement.dataset.ready, evil: "
      "document.documentElement.dataset.evil || 'no', images: document.images.length};" +
      std::string(
          "document.getElementById('timeline').dispatchEvent(new KeyboardEvent('keydown', "
          "{key: 'n'})); answer.span = document.getElementById('span').textContent;") +
      kAnswer;
  const std::string seen = browsed(page, driver, folder_);
  if (seen.empty()) GTEST_SKIP() << "skipped: no chromium to open the page in";
  const Json answer = Json::parse(title_of(seen), nullptr, false);
  ASSERT_TRUE(answer.is_object()) << seen.substr(0, 2000);
  EXPECT_EQ(answer["ready"], "yes");
  EXPECT_EQ(answer["evil"], "no");
  EXPECT_EQ(answer["images"], 0);
  EXPECT_NE(answer["span"].get<std::string>().find("(/script)"), std::string::npos) << answer;
}

}  // namespace report_test
}  // namespace weft::cli
