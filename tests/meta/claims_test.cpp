// What pages show of the engine is what the engine does: schedules and metric keys.
#include <gtest/gtest.h>

#include <cctype>
#include <cstring>

#include "tests/meta/page_support.h"
#include "tests/meta/source_support.h"
#include "weft/base/file.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/text.h"
#include "weft/train/metrics.h"

namespace weft::meta {
namespace claims_test {

TextFile read_page(const std::string& path) {
  return {.path = path, .text = base::read_text(WEFT_SOURCE_DIR "/" + path)};
}

// The story's model: two MoE layers over two expert-parallel ranks, one micro-batch.
std::string story_schedule() {
  config::ModelConfig model;
  model.num_layers = 2;
  model.num_moe_experts = 8;
  model.expert_model_parallel_size = 2;
  const schedule::Anatomy anatomy = schedule::describe(model,
                                                       {.dense = schedule::Sums::OverRanks,
                                                        .expert = schedule::Sums::None,
                                                        .totals = schedule::Sums::OverRanks});
  return schedule::print(schedule::build_training(anatomy, {.micro_batches = 1}));
}

// Lines that the printed schedule does not have in this order, one after the other.
Complaints schedule_complaints(const Page& page, const std::string& printed) {
  Complaints complaints;
  for (const Fence& fence : page.fences) {
    if (fence.kind != "schedule") continue;
    if (("\n" + printed).find("\n" + fence.text) == std::string::npos) {
      complaints.push_back("the engine does not print this:\n" + fence.text);
    }
  }
  return complaints;
}

Complaints metric_complaints(const Page& page) {
  const train::StepRecord record{.epoch = 1.0,
                                 .balance_loss = 1.0,
                                 .sequence_balance_loss = 1.0,
                                 .global_balance_loss = 1.0,
                                 .z_loss = 1.0,
                                 .expert_loads = {{}},
                                 .eval_loss = 1.0};
  Complaints complaints;
  const base::Json json = train::metrics_json(record);
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(page.spans, key) == page.spans.end()) {
      complaints.push_back(page.path + " does not name the metric " + key);
    }
  }
  return complaints;
}

TEST(Claims, AChangedScheduleIsNoticed) {
  const Page page = parse_page({.path = "a.md", .text = "```schedule\ncompute  F0.head\n```\n"});
  EXPECT_EQ(schedule_complaints(page, "compute  F0.head\ncompute  D0.head\n"), Complaints{});
  EXPECT_EQ(schedule_complaints(page, "compute  F1.head\n").size(), 1u);
}

TEST(Claims, TheStoryShowsTheScheduleTheEnginePrints) {
  const Page page = parse_page(read_page("docs/story.md"));
  const auto is_schedule = [](const Fence& fence) { return fence.kind == "schedule"; };
  EXPECT_GE(std::ranges::count_if(page.fences, is_schedule), 2);
  const Complaints complaints = schedule_complaints(page, story_schedule());
  EXPECT_TRUE(complaints.empty()) << listed(complaints) << "\n" << story_schedule();
}

TEST(Claims, AForgottenMetricIsNoticed) {
  EXPECT_FALSE(metric_complaints(parse_page({.path = "a.md", .text = "`lm_loss`"})).empty());
}

TEST(Claims, TheFormatsPageNamesEveryMetric) {
  const Complaints complaints = metric_complaints(parse_page(read_page("docs/formats.md")));
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

TEST(Claims, TheFilesThatNamePiecesAreThoseThatThePageLists) {
  std::vector<std::string> listed, found;
  for (const Fence& fence : parse_page(read_page("docs/adding.md")).fences) {
    if (fence.kind == "pieces") listed = words_of(fence.text);
  }
  for (const TextFile& file : files_below("weft", {".h", ".cpp"})) {
    const std::string code = code_of(file.text);
    for (std::size_t at = code.find("Piece::"); at != code.npos;
         at = code.find("Piece::", at + 1)) {
      const bool is_whole = at == 0 || (std::isalnum(code[at - 1]) == 0 && code[at - 1] != '_');
      const bool is_enumerator = std::isupper(code[at + std::strlen("Piece::")]) != 0;
      if (!is_whole || !is_enumerator) continue;
      found.push_back(file.path);
      break;
    }
  }
  EXPECT_FALSE(listed.empty());
  EXPECT_EQ(found, listed);
}

TEST(Claims, NoSwitchOverPiecesPartsOrDirectionsHasADefault) {
  Complaints complaints;
  for (const TextFile& file : files_below("weft", {".h", ".cpp"})) {
    const std::string code = code_of(file.text);
    for (std::size_t at = code.find("default:"); at != code.npos;
         at = code.find("default:", at + 1)) {
      // What is switched over is named by the label of the case before it.
      const std::size_t before = code.rfind("case ", at);
      if (before == code.npos) continue;
      const std::string label = code.substr(before, code.find(":\n", before) - before);
      const bool is_enum = label.find("::") != std::string::npos;
      if (is_enum) complaints.push_back(file.path + " has a default: over an enum");
    }
  }
  EXPECT_TRUE(complaints.empty()) << meta::listed(complaints);
}

}  // namespace claims_test
}  // namespace weft::meta
