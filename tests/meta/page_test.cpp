#include <gtest/gtest.h>

#include "tests/meta/page_support.h"
#include "tests/meta/shell_support.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/derive/derived.h"
#include "weft/grid/grid.h"
#include "weft/rules/validate.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::meta {
namespace page_test {

Page page_of(const std::string& text) { return parse_page({.path = "docs/a.md", .text = text}); }

bool one_file(std::string_view path) { return path == "weft/base/text.h" || path == "docs/b.md"; }

// A command that runs a config needs a valid one; others need existing keys and values.
std::string judge_run(const std::string& command, const std::vector<std::string>& words) {
  try {
    const config::Config config =
        words::resolve_words(WEFT_SOURCE_DIR "/recipes", words, words::Audience::Run).config;
    if (command == "train" || command == "bench") rules::validate(config);
    if (command == "grid") grid::Grid(derive::layout_of(config));
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return {};
}

std::set<std::string> program_commands() {
  return listed_commands(shell("'" WEFT_BINARY "' --help").said);
}

TEST(Page, FencesSpansAndLinksAreToldApart) {
  const Page page = page_of("see `a b` and [c](d.md)\n```sh\nmake x  # `no`\n```\n");
  EXPECT_EQ(page.spans, std::vector<std::string>{"a b"});
  EXPECT_EQ(page.links, std::vector<std::string>{"d.md"});
  ASSERT_EQ(page.fences.size(), 1u);
  EXPECT_EQ(page.fences[0].kind, "sh");
  EXPECT_EQ(page.commands(), (std::vector<std::string>{"a b", "make x"}));
}

TEST(Page, AMissingPathIsNamed) {
  for (const char* text : {"`weft/base/gone.h`",
                           "`gone.h`",
                           "[b](gone.md)",
                           "`tools/`",
                           "```sh\ntools/gone.sh -n 2\n```"}) {
    EXPECT_EQ(path_complaints(page_of(text), one_file).size(), 1u) << text;
  }
}

TEST(Page, PathsFromTheRootTheEngineAndThePageAreFound) {
  for (const char* text : {"`weft/base/text.h`",
                           "`base/text.h`",
                           "`b.md`",
                           "[b](b.md#part)",
                           "[b](https://example.org/a.md)",
                           "`build/release/bin/weft`",
                           "`train.train_iters`",
                           "`3F7.dispatch`",
                           "`a.b=c/d`"}) {
    EXPECT_EQ(path_complaints(page_of(text), one_file), Complaints{}) << text;
  }
}

TEST(Page, AQuoteThatIsNotInItsFileIsNamed) {
  const auto wrong = [](const std::string& fence) {
    const auto read = [](std::string_view path) {
      return std::string(path == "weft/a.cpp" ? "f(x) {\n  g(x);\n\n  h();\n  g(y);\n}\n" : "");
    };
    return quote_complaints(page_of("```" + fence + "```\n"), read).size();
  };
  EXPECT_EQ(wrong("cpp weft/a.cpp\ng(x);\nh();\n"), 0u);
  EXPECT_EQ(wrong("cpp weft/a.cpp\nf(x) {\n  ...\n  g(y);\n}\n"), 0u);
  EXPECT_EQ(wrong("text\nno code\n"), 0u);
  EXPECT_EQ(wrong("cpp weft/a.cpp\ng(z);\n"), 1u);
  EXPECT_EQ(wrong("cpp weft/a.cpp\ng(x);\ng(y);\n"), 1u);      // a line is left out
  EXPECT_EQ(wrong("cpp weft/a.cpp\ng(y);\n...\nh();\n"), 1u);  // in another order
  EXPECT_EQ(wrong("cpp weft/a.cpp\n"), 1u);
  EXPECT_EQ(wrong("cpp weft/b.cpp\ng(x);\n"), 1u);
  EXPECT_EQ(wrong("cpp\ng(x);\n"), 1u);
}

TEST(Page, AMissingMakeTargetIsNamed) {
  const std::set<std::string> targets =
      make_targets("weft := a\nall: b\n\tmake no\na b: c\n.X: d\n");
  EXPECT_EQ(targets, (std::set<std::string>{"a", "all", "b"}));
  EXPECT_EQ(make_complaints(page_of("`make a`\n```sh\nmake b\n```\nmake sure"), targets),
            Complaints{});
  EXPECT_EQ(make_complaints(page_of("`make c`"), targets).size(), 1u);
  EXPECT_EQ(make_complaints(page_of("```sh\nmake a c\n```"), targets).size(), 1u);
}

TEST(Page, AnUnknownCommandRecipeOrKeyIsNamed) {
  const std::set<std::string> commands = program_commands();
  ASSERT_TRUE(commands.contains("train"));
  const auto wrong = [&](const char* text) {
    return weft_complaints(page_of(text), commands, judge_run).size();
  };
  EXPECT_EQ(wrong("`weft grid tiny world=4`"), 0u);
  EXPECT_EQ(wrong("```sh\nbuild/release/bin/weft verify a/b world=2 \\\n  --json\n```"), 0u);
  EXPECT_EQ(wrong("`weft train [RECIPE]` and `weft --help`"), 0u);
  EXPECT_EQ(wrong("`weft tarin`"), 1u);
  EXPECT_EQ(wrong("`weft train tinny`"), 1u);
  EXPECT_EQ(wrong("```sh\nweft train tiny \\\n  model.hiden_size=3\n```"), 1u);
  EXPECT_EQ(wrong("`weft train train.train_iters=soon`"), 1u);
  EXPECT_EQ(wrong("`weft train tiny train.global_batch_size=3`"), 1u);  // does not divide
  EXPECT_EQ(wrong("`weft grid world=7 model.expert_model_parallel_size=2`"), 1u);
}

TEST(Documents, EveryPathExists) {
  Complaints complaints;
  for (const Page& page : documents()) append(complaints, path_complaints(page, exists));
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

TEST(Documents, EveryQuoteIsInItsFile) {
  const auto read = [](std::string_view path) {
    return exists(path) ? base::read_text(WEFT_SOURCE_DIR "/" + std::string(path)) : std::string();
  };
  Complaints complaints;
  std::size_t of_story = 0;
  for (const Page& page : documents()) {
    append(complaints, quote_complaints(page, read));
    if (page.path == "docs/story.md") of_story = count_quotes(page);
  }
  EXPECT_GE(of_story, 8u);
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

// The README has the modules, docs/map.md the folders inside them.
TEST(Documents, TheMapsHaveEveryFolder) {
  const std::string maps = base::read_text(WEFT_SOURCE_DIR "/README.md") +
                           base::read_text(WEFT_SOURCE_DIR "/docs/map.md");
  std::set<std::string> folders;
  for (const TextFile& file : files_below("weft", {".h", ".cpp", ".cu", ".cuh", ".def", ".js"})) {
    folders.insert(file.path.substr(0, file.path.rfind('/') + 1));
  }
  folders.erase("weft/");
  EXPECT_GT(folders.size(), 80u);
  for (const std::string& folder : folders) {
    EXPECT_NE(maps.find("| `" + folder + "` |"), std::string::npos) << folder;
  }
}

TEST(Documents, TheManualPageHasEveryCommand) {
  const std::string page = base::read_text(WEFT_SOURCE_DIR "/docs/weft.1");
  for (const char* command : {
#define WEFT_COMMAND(name) #name,
#include "weft/cli/commands.def"
#undef WEFT_COMMAND
       }) {
    EXPECT_NE(page.find(std::string(".B ") + command + "\n"), std::string::npos) << command;
  }
}

TEST(Documents, EveryMakeTargetExists) {
  const std::set<std::string> targets = make_targets(base::read_text(WEFT_SOURCE_DIR "/Makefile"));
  Complaints complaints;
  for (const Page& page : documents()) append(complaints, make_complaints(page, targets));
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

TEST(Documents, EveryCommandIsOneTheProgramTakes) {
  const std::set<std::string> commands = program_commands();
  Complaints complaints;
  for (const Page& page : documents()) {
    append(complaints, weft_complaints(page, commands, judge_run));
  }
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

}  // namespace page_test
}  // namespace weft::meta
