// Completion script as bash runs it: sourced, with weft on PATH.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/program_support.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace completion_test {

using Words = std::vector<std::string>;

// Candidates of bash for a line that ends at the cursor.
Words candidates(const std::string& line) {
  const std::string script = base::text(
      R"sh(PATH="$(dirname '{0}'):$PATH"; source <('{0}' completion bash); cd '{1}'
COMP_LINE='{2}'; COMP_POINT=${{#COMP_LINE}}; read -ra COMP_WORDS <<<"$COMP_LINE"
[[ "$COMP_LINE" == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _weft weft "" ""
printf "%s\\n" "${{COMPREPLY[@]}}")sh",
      WEFT_BINARY,
      WEFT_SOURCE_DIR,
      line);
  const Outcome outcome = shell("bash", script);
  EXPECT_EQ(outcome.code, 0) << line;
  EXPECT_EQ(outcome.err, "") << line;
  Words words = base::split(outcome.out, '\n');
  std::erase(words, "");
  return words;
}

bool offers(const std::string& line, const std::string& word) {
  const Words words = candidates(line);
  return std::ranges::find(words, word) != words.end();
}

TEST(BashCompletion, OffersRecipesAndTheirLayouts) {
  EXPECT_TRUE(offers("weft check ti", "tiny"));
  EXPECT_TRUE(offers("weft check qw", "qwen3_30b_a3b"));
  EXPECT_TRUE(offers("weft check qwen3_30b_a3b_p", "qwen3_30b_a3b_pretrain_16gpu_h100_bf16"));
  EXPECT_TRUE(offers("weft recipes qw", "qwen3_30b_a3b"));
  EXPECT_EQ(candidates("weft check nothing_of_this_name"), Words{});
}

TEST(BashCompletion, OffersTheOptionsOfEachCommand) {
  EXPECT_TRUE(offers("weft perf --va", "--vary"));
  EXPECT_TRUE(offers("weft perf tiny --ag", "--against"));
  EXPECT_TRUE(offers("weft check --ex", "--explain"));
  EXPECT_TRUE(offers("weft check --sch", "--schedule"));
  EXPECT_TRUE(offers("weft train --config", "--config-file"));
  EXPECT_TRUE(offers("weft schedule --sv", "--svg"));
  EXPECT_TRUE(offers("weft doctor --js", "--json"));
  EXPECT_TRUE(offers("weft bench overlap --ro", "--rounds"));
  EXPECT_TRUE(offers("weft bench dispatch --ra", "--ranks-per-node"));
  EXPECT_FALSE(offers("weft check --va", "--vary"));
}

TEST(BashCompletion, OffersCommandsAndWhatMustFollowThem) {
  EXPECT_TRUE(offers("weft ch", "check"));
  EXPECT_TRUE(offers("weft bench ", "overlap"));
  EXPECT_TRUE(offers("weft completion ", "fish"));
}

TEST(BashCompletion, OffersKeysValuesAndRuleIds) {
  EXPECT_TRUE(offers("weft train tiny model.num_lay", "model.num_layers="));
  EXPECT_TRUE(offers("weft train tiny model.fp8=hy", "hybrid"));
  EXPECT_TRUE(offers("weft train --moe_a2a_overlap ", "true"));
  EXPECT_TRUE(offers("weft perf --vary model.num_lay", "model.num_layers="));
  EXPECT_TRUE(offers("weft perf --vary model.bf16=false,t", "false,true"));
  EXPECT_TRUE(offers("weft check --explain C1", "C14"));
  EXPECT_TRUE(offers("weft check --explain A", "A1"));
}

TEST(BashCompletion, OffersTheGpusThatAPlanPrices) {
  const Words gpus = candidates("weft plan tiny --gpu ");
  EXPECT_NE(std::ranges::find(gpus, "h100"), gpus.end());
  for (const std::string gpu : {"a100", "vr200", "r100"}) {
    EXPECT_EQ(std::ranges::find(gpus, gpu), gpus.end()) << gpu;
  }
}

TEST(BashCompletion, OffersFilesWhereAFileIsWanted) {
  EXPECT_TRUE(offers("weft train --config-file READ", "README.md"));
  EXPECT_TRUE(offers("weft perf tiny --against docs/per", "docs/perf.md"));
  EXPECT_TRUE(offers("weft perf tiny --out do", "docs"));
  EXPECT_TRUE(offers("weft check recipes/tin", "recipes/tiny.yaml"));
  EXPECT_TRUE(offers("weft data import READ", "README.md"));
}

}  // namespace completion_test
}  // namespace weft::cli
