// Pages show the engine's real behaviour: schedules and metric keys.
#include <gtest/gtest.h>

#include <regex>

#include "tests/meta/page_support.h"
#include "tests/meta/source_support.h"
#include "weft/base/files/file.h"
#include "weft/schedule/builders/pipeline.h"
#include "weft/schedule/text/text.h"
#include "weft/train/log/metrics.h"

namespace weft::meta {
namespace claims_test {

TextFile read_page(const std::string& path) {
  return {.path = path, .text = base::read_text(WEFT_SOURCE_DIR "/" + path)};
}

// Model of the story page: two MoE layers over two expert-parallel ranks, one micro-batch.
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

// Fences whose lines are not consecutive lines of the printed schedule.
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
                                 .eval_loss = 1.0,
                                 .repeated = 1};
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

// True for `Piece::Head`, or for using all enumerators.
bool names_pieces(const std::string& code) {
  static const std::regex named(R"(\bPiece::[A-Z]|\busing enum (\w+::)*Piece\s*;)");
  return code.find("Piece") != code.npos && std::regex_search(code, named);
}

// True for an enumerator; false for a number, a letter, a kConstant and a MACRO.
bool is_enumerator(const std::string& label) {
  static const std::regex shape(R"((\w+::)*[A-Z]\w*[a-z]\w*|(\w+::)+\w+)");
  return std::regex_match(label, shape);
}

// Opening brace of the block around `at`; npos: none.
std::size_t block_around(const std::string& code, std::size_t at) {
  for (int depth = 0; at-- > 0;) {
    if (code[at] == '}') ++depth;
    if (code[at] == '{' && depth-- == 0) return at;
  }
  return std::string::npos;
}

// Number of switches over an enum that have a default. The first label tells the type of a switch.
int enum_defaults(const std::string& code) {
  static const std::regex first_case(R"(\bcase\s+((?:[^:]|::)+?)\s*:(?!:))");
  int count = 0;
  for (std::size_t at = code.find("default:"); at != code.npos;
       at = code.find("default:", at + 1)) {
    const std::size_t open = block_around(code, at);
    if (open == code.npos) continue;
    std::smatch found;
    const std::string block = code.substr(open);
    if (std::regex_search(block, found, first_case) && is_enumerator(found[1])) ++count;
  }
  return count;
}

TEST(Claims, AllNamesOfPiecesAtOnceAreNoticed) {
  EXPECT_TRUE(names_pieces("f(Piece::Head);"));
  EXPECT_TRUE(names_pieces("using enum schedule::Piece;"));
  EXPECT_FALSE(names_pieces("f(TimePiece::Head, Piece::count());"));
}

TEST(Claims, TheFilesThatNamePiecesAreThoseThatThePageLists) {
  std::vector<std::string> listed, found;
  for (const Fence& fence : parse_page(read_page("docs/adding.md")).fences) {
    if (fence.kind == "pieces") listed = words_of(fence.text);
  }
  for (const TextFile& file : files_below("weft", {".h", ".cpp", ".cu", ".cuh"})) {
    const bool is_block = file.path.starts_with("weft/block/");
    if (!is_block && names_pieces(code_of(file.text))) found.push_back(file.path);
  }
  EXPECT_FALSE(listed.empty());
  EXPECT_EQ(found, listed);
}

TEST(Claims, ADefaultOverAnEnumIsNoticed) {
  EXPECT_EQ(enum_defaults("switch (p) { case Piece::Head: f(); default: g(); }"), 1);
  EXPECT_EQ(enum_defaults("using enum Piece; switch (p) { case Head: f(); default: g(); }"), 1);
  EXPECT_EQ(enum_defaults("switch (p) { default: g(); case schedule::Piece::Head: f(); }"), 1);
  EXPECT_EQ(
      enum_defaults("switch (p) { case Head: { switch (c) { case 1: f(); } } default: g(); }"),
      1);
  EXPECT_EQ(enum_defaults("switch (p) { case Head: switch (c) { case 1: default: f(); } }"), 0);
  EXPECT_EQ(enum_defaults("switch (c) { case '': f(); case 1: f(); default: g(); }"), 0);
  EXPECT_EQ(
      enum_defaults("switch (c) { case '': default: f(); } switch (p) { case P::Head: g(); }"),
      0);
  EXPECT_EQ(enum_defaults("switch (errno) { case ENOSPC: f(); default: g(); }"), 0);
  EXPECT_EQ(enum_defaults("switch (n) { case kMost: f(); default: g(); }"), 0);
}

TEST(Claims, NoSwitchOverAnEnumHasADefault) {
  Complaints complaints;
  for (const TextFile& file : files_below("weft", {".h", ".cpp", ".cu", ".cuh"})) {
    if (enum_defaults(code_of(file.text)) == 0) continue;
    complaints.push_back(file.path + " has a default: over an enum");
  }
  EXPECT_TRUE(complaints.empty()) << meta::listed(complaints);
}

}  // namespace claims_test
}  // namespace weft::meta
