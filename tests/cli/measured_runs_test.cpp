// Measured steps with their words and source: tests/golden/h200_runs.csv from Weft on one H200,
// b200_runs.csv from Megatron-LM on eight B200 (SimuMax, docs/b200, release v1.2).
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/cli/plan/program_option.h"
#include "weft/cli/schedule/schedule_costs.h"
#include "weft/derive/derived.h"
#include "weft/plan/hardware/run_hardware.h"
#include "weft/plan/price/price.h"
#include "weft/plan/price/price_memory.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/plan/published/csv.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::cli {
namespace measured_runs_test {

using plan::Program;

const std::filesystem::path kSource = WEFT_SOURCE_DIR;

config::Config run_of(const std::string& recipe, const std::string& overrides = "") {
  std::vector<std::string> words{recipe};
  for (const std::string& word : base::split(overrides, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words::resolve_words(kSource / "recipes", words, words::Audience::Run).config;
}

plan::Hardware card(const std::string& name) {
  return plan::find_hardware(kSource / "hardware", name);
}

using MeasuredRow = std::map<std::string, std::string>;

std::vector<MeasuredRow> measured(const std::string& file) {
  const plan::CsvTable table =
      plan::parse_csv(base::read_text(kSource / "tests" / "golden" / file), file);
  std::vector<MeasuredRow> rows;
  for (const plan::CsvRow& row : table.rows) {
    MeasuredRow& one = rows.emplace_back();
    for (const std::string& column : table.columns) one[column] = table.cell(row, column);
  }
  return rows;
}

TEST(MeasuredRuns, OfWeftOnOneH200AreMet) {
  const std::vector<MeasuredRow> rows = measured("h200_runs.csv");
  ASSERT_EQ(rows.size(), 20u);
  for (const MeasuredRow& row : rows) {
    const config::Config asked = run_of(row.at("recipe"), row.at("overrides"));
    const plan::Hardware h200 = plan::hardware_of_run(asked, card("h200"), std::nullopt);
    ASSERT_EQ(h200.program, Program::Weft) << row.at("recipe");
    const plan::Price price = plan::price_step(rules::judge(asked).config, h200);
    const bool is_whole = row.at("part") == "step";
    const double ms = price.step_ms - (is_whole ? 0 : price.compute.optimizer);
    const double limit = std::stod(row.at("within_percent")) / 100;
    EXPECT_NEAR(ms / std::stod(row.at("measured_ms")), 1, limit)
        << row.at("recipe") << " " << row.at("overrides") << ", " << row.at("part") << ": " << ms;
  }
}

TEST(MeasuredRuns, OfMegatronOnEightB200AreMet) {
  const plan::Hardware b200 = card("b200");
  std::vector<double> errors, sizes;
  for (const MeasuredRow& row : measured("b200_runs.csv")) {
    const config::Config config =
        rules::judge(run_of(row.at("recipe"), row.at("overrides"))).config;
    const double error = plan::price_step(config, b200).step_ms / std::stod(row.at("measured_ms"));
    errors.push_back(error - 1);
    sizes.push_back(std::abs(error - 1));
    EXPECT_NEAR(error, 1, 0.16) << row.at("case");
  }
  ASSERT_EQ(errors.size(), 29u);
  EXPECT_NEAR(base::median(errors), 0, 0.03);
  EXPECT_LE(base::median(sizes), 0.05);
}

// Transformer Engine keeps an unread gradient of each shape: 5.9 GiB here.
TEST(MeasuredRuns, MegatronsDummyGradientsArePriced) {
  for (const MeasuredRow& row : measured("b200_runs.csv")) {
    if (row.at("case") != "llama3_405b_l4_tp1_pp2_dp4_mbc4_cef") continue;
    const config::Config config =
        rules::judge(run_of(row.at("recipe"), row.at("overrides"))).config;
    plan::Hardware b200 = card("b200");
    const plan::MemoryPrice priced = plan::price_memory(config, b200);
    b200.work.keeps_dummy_gradients = false;
    const double without = plan::price_memory(config, b200).total();
    EXPECT_NEAR((priced.total() - without) / std::pow(2.0, 30), 5.94, 0.05);
    const double bytes = std::stod(row.at("measured_gib")) * std::pow(2.0, 30);
    EXPECT_NEAR((priced.total() - priced.reserved) / bytes, 1, 0.03);
    return;
  }
  FAIL() << "no such row";
}

TEST(ProgramChoice, RunsThatWeftTrainsOnACardAreItsOwn) {
  const auto usual = [](const std::string& recipe, const std::string& gpu) {
    return plan::usual_program(run_of(recipe), card(gpu));
  };
  EXPECT_EQ(usual("olmoe_7b_gpu", "h200"), Program::Weft);
  EXPECT_EQ(usual("overlap_bench_gpu", "h200"), Program::Weft);
  EXPECT_EQ(usual("qwen3_30b_a3b", "h200"), Program::MegatronBridge);
  EXPECT_EQ(usual("qwen3_30b_a3b_gpu", "b200"), Program::MegatronBridge) << "never measured there";
  const config::Config fp8 = run_of("qwen3_30b_a3b_gpu", "model.fp8=hybrid");
  EXPECT_EQ(plan::usual_program(fp8, card("h200")), Program::MegatronBridge);
}

TEST(ProgramChoice, TheWordDecidesAndAFileMustKnowIt) {
  const config::Config run = run_of("qwen3_30b_a3b_gpu");
  const auto step = [&](std::optional<Program> program) {
    return plan::price_step(rules::judge(run).config,
                            plan::hardware_of_run(run, card("h200"), program))
        .step_ms;
  };
  EXPECT_EQ(step(std::nullopt), step(asked_program("weft")));
  EXPECT_GT(step(asked_program("megatron")), 1.1 * step(asked_program("weft")));
  EXPECT_EQ(asked_program(""), std::nullopt);
  try {
    plan::as_run_by(card("b200"), Program::Weft);
    FAIL() << "b200 has no numbers of Weft";
  } catch (const base::ConfigError& error) {
    const std::string said = error.what();
    for (const char* part : {"b200", "--program=megatron", "--gpu=h200"}) {
      EXPECT_NE(said.find(part), std::string::npos) << said;
    }
  }
}

// Schedule nodes cost as much as in the run's plan, never as on a CPU.
TEST(ScheduleCostsOfGpus, AreThoseOfThePlan) {
  const config::Config asked = run_of("olmoe_7b_gpu");
  const rules::Verdict verdict = rules::validate_schedule(asked);
  const grid::Grid grid(derive::layout_of(verdict.config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(verdict.config, grid);
  const ScheduleCosts costs({}, verdict.config);
  EXPECT_NE(costs.text(verdict.config).find("priced as Weft runs it"), std::string::npos);
  const double seconds =
      exec::sim::simulate(plan::simulated_step(plans, costs.of(verdict.config, grid, plans)))
          .step_seconds();
  const double priced =
      plan::price_step(verdict.config, plan::hardware_of_run(asked, card("h200"), std::nullopt))
          .step_ms;
  EXPECT_NEAR(1e3 * seconds / priced, 1, 0.05);
}

TEST(ScheduleCostsOfGpus, WantAGpu) {
  config::Config run = run_of("tiny", "runtime.device=cuda hardware.device_name=Unknown");
  try {
    ScheduleCosts({}, run);
    FAIL() << "a card that no file is of";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("hardware.gpu=NAME"), std::string::npos);
  }
  EXPECT_NO_THROW(ScheduleCosts({.flops_per_second = 1e14}, run));
  run.hardware.device_name.clear();
  run.hardware.gpu = config::Gpu::A100;
  EXPECT_NE(ScheduleCosts({}, run).text(run).find("3.12e+14"), std::string::npos);
}

}  // namespace measured_runs_test
}  // namespace weft::cli
