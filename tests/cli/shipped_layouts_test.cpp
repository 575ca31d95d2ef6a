// All runs that Weft ships are judged, including whether they fit their GPUs, within their time.
#include <gtest/gtest.h>

#include <ctime>

#include "tests/soak.h"
#include "weft/cli/judge/check_run.h"
#include "weft/derive/derived.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace shipped_layouts_test {

// The promise is half a second; machines with shared cores are slower.
constexpr double kMostCpuSeconds = 2;
constexpr std::size_t kEach = 20;  // every n-th layout; `make soak` takes all

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const std::filesystem::path& file : words::recipe_files(recipes_folder())) {
    const words::Recipe recipe = words::load_recipe(file, recipes_folder());
    names.push_back(recipe.name);
    for (const words::RecipeLayout& layout : recipe.layouts) {
      names.push_back(recipe.full_name(layout));
    }
  }
  return names;
}

void expect_judged(const std::vector<std::string>& words) {
  SCOPED_TRACE(testing::PrintToString(words));
  const double start = cpu_seconds();
  const CheckReport report = check_run({.run = {.words = words, .format = Format::Text}});
  EXPECT_LT(cpu_seconds() - start, kMostCpuSeconds);
  ASSERT_TRUE(report.verdict.legal()) << to_text(report);
  const config::Config& config = report.verdict.config;
  if (!derive::is_on_gpu(config)) return;
  EXPECT_NE(report.fits.empty(), report.limits.empty()) << "one of the two is known";
}

// Layouts whose search for a fit was aborted, or took longest.
TEST(ShippedLayouts, ThatWereHardToJudgeAreJudged) {
  expect_judged({"glm45_355b"});
  expect_judged({"gpt_oss_20b_sft_8gpu_h100_bf16_32k"});
  expect_judged({"qwen3_30b_a3b_pretrain_8gpu_b300_fp8mx"});
}

TEST(ShippedLayouts, AreJudged) {
  const bool every = soaks();
  const std::vector<std::string> names = all_names();
  for (std::size_t i = 0; i < names.size(); i += every ? 1 : kEach) expect_judged({names[i]});
}

TEST(ShippedLayouts, LinesOfTheHarnessThatDoNotFitAreJudged) {
  expect_judged({"-mr",
                 "deepseek_v3",
                 "-g",
                 "h100",
                 "-ng",
                 "256",
                 "-c",
                 "bf16",
                 "-tp",
                 "1",
                 "-pp",
                 "16",
                 "-vp",
                 "None",
                 "-ep",
                 "8",
                 "-gb",
                 "2048"});
  expect_judged({"-mr",
                 "qwen3_235b_a22b",
                 "-g",
                 "b200",
                 "-ng",
                 "256",
                 "-c",
                 "fp8_mx",
                 "-pp",
                 "8",
                 "-ep",
                 "8",
                 "-mb",
                 "2",
                 "-gb",
                 "8192",
                 "--cuda_graph_impl",
                 "transformer_engine",
                 "--cuda_graph_scope",
                 "moe_router,moe_preprocess,attn"});
}

}  // namespace shipped_layouts_test
}  // namespace weft::cli
