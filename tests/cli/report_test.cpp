// weft report: reads runs and traces, writes text, JSON and a page.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/program_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace report_test {

namespace fs = std::filesystem;
using base::Json;

// One traced run for all tests, on an emulated fabric so that communication is visible.
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
  // Exposure that the run itself wrote.
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
  for (const char* fact : {"model", "ranks", "batch", "rate", "machine", "weft", "started"}) {
    EXPECT_NE(json["about"].value(fact, ""), "") << fact;
  }
  EXPECT_EQ(json["learning"]["last_step"], 4);
  EXPECT_EQ(json["learning"]["points"].size(), 4u);
  EXPECT_EQ(json["starts"], Json::array({0}));
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
    // weft plan prices this at 34 % more throughput, including compute slowed by transfers.
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

TEST_F(ReportCommand, ARunThatWentOnSaysFromWhichStep) {
  const std::string folder = file("resumed"), saved = file("saved");
  const auto train_to = [&](int steps) {
    return weft(
        base::text("train tiny world=1 ep=1 gbs=2 model.num_layers=1 dataset.kind=mock "
                   "train.eval_interval=0 train.train_iters={} checkpoint.save={} "
                   "checkpoint.load={} runtime.run_dir={}",
                   steps,
                   saved,
                   saved,
                   folder));
  };
  ASSERT_EQ(train_to(2).code, 0);
  ASSERT_EQ(train_to(3).code, 0);
  const Json json = report(folder);
  EXPECT_EQ(json["starts"], Json::array({0, 2}));
  EXPECT_EQ(json["learning"]["last_step"], 3);
  EXPECT_NE(json["about"]["started"].dump().find("from step 2"), std::string::npos);
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

// Pages of all kinds in a headless browser: each is a frame of one page, wide and narrow. A script
// behind the page's own writes its findings into the title.
class Browser {
 public:
  explicit Browser(fs::path folder) : folder_(std::move(folder)) {}

  void add(const std::string& name, const std::string& page, const std::string& driver) {
    std::string content = base::read_text(page);
    content.insert(content.rfind("</body>"), "<script>" + driver + kAnswer + "</script>");
    base::write_whole(folder_ / (name + ".html"), content);
    for (const int width : {1200, 500}) {
      frames_ += base::text(
          "<iframe name=\"{}-{}\" width=\"{}\" height=\"900\" src=\"{}.html\"></iframe>\n",
          name,
          width,
          width,
          name);
    }
  }

  // False: no browser.
  bool open() {
    base::write_whole(folder_ / "all.html",
                      "<!DOCTYPE html><title>none</title><body>" + frames_ +
                          "<script>addEventListener('load', () => { const all = {};\n"
                          "for (const one of document.querySelectorAll('iframe')) all[one.name] = "
                          "one.contentDocument.title;\n"
                          "document.title = JSON.stringify(all); });</script></body>");
    const Outcome outcome =
        shell("bash",
              "browser=$(command -v chromium || command -v chromium-browser) || exit 77\n"
              "timeout 240 \"$browser\" --headless=new --no-sandbox --disable-gpu "
              "--allow-file-access-from-files --enable-logging=stderr --user-data-dir='" +
                  (folder_ / "browser").string() +
                  "' --virtual-time-budget=8000 --window-size=1300,900 --dump-dom 'file://" +
                  (folder_ / "all.html").string() + "'");
    if (outcome.code == 77) return false;
    for (const std::string& line : base::split(outcome.err, '\n')) {
      if (line.find("CONSOLE") != line.npos) complaints_.push_back(line);
    }
    const std::size_t begin = outcome.out.find("<title>"), end = outcome.out.find("</title>");
    titles_ = begin == std::string::npos
                  ? Json()
                  : Json::parse(outcome.out.substr(begin + 7, end - begin - 7), nullptr, false);
    EXPECT_TRUE(titles_.is_object()) << outcome.err << outcome.out.substr(0, 2000);
    return true;
  }

  // Findings of a page's script.
  Json answer(const std::string& frame) const {
    return Json::parse(titles_.value(frame, ""), nullptr, false);
  }
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  // Title that needs no escapes.
  static constexpr const char* kAnswer =
      "document.title = JSON.stringify(answer).replaceAll('<', '(').replaceAll('>', "
      "')').replaceAll('&', '+');";

  fs::path folder_;
  std::string frames_;
  Json titles_;
  std::vector<std::string> complaints_;
};

// Properties of every page.
const std::string kLook = R"JS(
  const root = document.documentElement, all = (what) => [...document.querySelectorAll(what)];
  const answer = {ready: root.dataset.ready, evil: root.dataset.evil || "no", images: document.images.length,
    failed: all("section").filter((one) => one.textContent.includes("could not be drawn")).length,
    headings: all("h2").length, unknown: all(".hint").filter((one) => one.textContent.startsWith("Not known")).length,
    overflow: root.scrollWidth - root.clientWidth, pictures: all("svg").length,
    scales: all("svg").filter((one) => one.clientWidth > 0).map((one) => one.getScreenCTM().a),
    zeros: all("#walls tbody tr").filter((row) => row.children[1].textContent === "0.000").length,
    text: document.getElementById("summary").textContent};
)JS";

// Uses of the timeline and the theme.
const std::string kUse = R"JS(
  const canvas = document.getElementById("timeline"), where = () => document.getElementById("view").textContent;
  const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
  answer.drawn = +canvas.dataset.drawn;
  answer.hint = document.getElementById("span").textContent;
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
  answer.theme = root.dataset.theme;
  answer.paths = document.querySelectorAll("#memory path").length;
  answer.legend = document.getElementById("legend").textContent;
)JS";

// Kernel names that contain markup and code, which a page must not interpret.
std::string hostile_trace() {
  const std::string evil =
      R"(</script><script>document.documentElement.dataset.evil='yes'</script>)"
      R"(<img src=x onerror=\"document.documentElement.dataset.evil='yes'\">)";
  return base::text(R"([{{"ph":"X","cat":"kernel","name":"{0}","pid":0,"tid":7,"ts":1,"dur":5,)"
                    R"("args":{{"stream":7,"Collective name":"{0}"}}}},)"
                    R"({{"ph":"X","cat":"kernel","name":"nccl {0}","pid":0,"tid":8,"ts":6,"dur":5,)"
                    R"("args":{{"stream":8,"Process Group Description":"{0}"}}}}])",
                    evil);
}

TEST_F(ReportCommand, PagesOfAllKindsOpenWithoutAComplaint) {
  const std::string untraced = file("untraced_page"), one = file("one_rank.json");
  fs::create_directories(untraced);
  for (const char* name : {"config.yaml", "metrics.jsonl", "starts.jsonl"}) {
    fs::copy_file(fs::path(run_folder()) / name, fs::path(untraced) / name);
  }
  base::write_whole(one,
                    R"([{"ph":"X","cat":"node","name":"0F0.route","pid":0,"tid":0,"ts":0,"dur":5,)"
                    R"("args":{"node":"0F0.route","run":0}}])");
  base::write_whole(file("hostile.json"), hostile_trace());
  const std::string simulated = file("simulated_page.json");
  weft("plan --simulate qwen3_30b_a3b gbs=64 ep=16 world=16 --gpu=h100 --trace=" + simulated);
  fs::create_directories(folder_ / "pages");
  Browser browser(folder_ / "pages");
  const auto add = [&](const std::string& name, const std::string& path, const std::string& more) {
    const std::string page = file(name + ".html");
    ASSERT_EQ(weft("report " + path + " --html=" + page).code, 0) << name;
    browser.add(name, page, kLook + more);
  };
  add("many", run_folder(), kUse);
  add("untraced", untraced, "");
  add("one", one, "");
  add("simulated", simulated, "");
  add("profiler",
      file("hostile.json"),
      "document.getElementById('timeline').dispatchEvent(new KeyboardEvent('keydown', {key: 'n'}));"
      "answer.span = document.getElementById('span').textContent;");
  const std::string hostile = base::read_text(file("profiler.html"));
  EXPECT_EQ(hostile.find("</script><script>document"), hostile.npos);
  EXPECT_EQ(hostile.find("<img"), hostile.npos);
  const std::string broken = file("broken.html");
  base::write_whole(broken, "<!DOCTYPE html><body></body>");
  browser.add("broken", broken, "const answer = {}; setTimeout(() => planted(), 0);");
  if (!browser.open()) GTEST_SKIP() << "skipped: no chromium to open the pages in";
  for (const std::string& complaint : browser.complaints()) {
    EXPECT_NE(complaint.find("planted is not defined"), complaint.npos) << complaint;
  }
  EXPECT_EQ(browser.complaints().size(), 2u) << "the planted fault is seen, in both frames";
  for (const char* name : {"many", "untraced", "one", "simulated", "profiler"}) {
    for (const char* width : {"-1200", "-500"}) {
      const Json seen = browser.answer(name + std::string(width));
      SCOPED_TRACE(name + std::string(width) + " " + seen.dump());
      ASSERT_TRUE(seen.is_object());
      EXPECT_EQ(seen["ready"], "yes");
      EXPECT_EQ(seen["failed"], 0);
      EXPECT_EQ(seen["evil"], "no");
      EXPECT_EQ(seen["images"], 0);
      EXPECT_GE(seen["headings"], 10);
      EXPECT_EQ(seen["overflow"], 0) << "the page is as wide as its window: tables scroll";
      EXPECT_EQ(seen["zeros"], 0) << "no row for a wall that is not there";
      for (const Json& scale : seen["scales"]) {
        EXPECT_NEAR(scale.get<double>(), 1, 0.02) << "letters of a picture keep their size";
      }
    }
  }
  const Json untraced_page = browser.answer("untraced-1200");
  EXPECT_GE(untraced_page["pictures"], 4) << "loss, speed, memory and expert loads need no trace";
  EXPECT_EQ(untraced_page["unknown"], 4) << "timeline, walls, exposure and prediction do";
  EXPECT_NE(browser.answer("one-1200")["text"].dump().find("of 1 rank,"), std::string::npos);
  const std::string span = browser.answer("profiler-1200")["span"];
  EXPECT_NE(span.find("(/script)"), span.npos) << span;
  const Json used = browser.answer("many-1200");
  EXPECT_GT(used["drawn"], 50);
  EXPECT_NE(used["hint"].dump().find("Point at a span"), std::string::npos);
  EXPECT_NE(used["zoomed"], used["all"]);
  EXPECT_NE(used["moved"], used["zoomed"]);
  EXPECT_EQ(used["home"], used["all"]);
  EXPECT_NE(used["wheel"], used["all"]);
  EXPECT_NE(used["span"].dump().find(" ms long"), std::string::npos) << used;
  EXPECT_NE(used["themes"][0], used["themes"][1]);
  EXPECT_EQ(used["address"], "1.000 to 2.000 ms");
  EXPECT_EQ(used["theme"], "dark");
  EXPECT_GT(used["paths"], 6);
  EXPECT_NE(used["legend"].dump().find("waiting"), std::string::npos) << used["legend"];
}

}  // namespace report_test
}  // namespace weft::cli
