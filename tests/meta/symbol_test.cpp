#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/meta/symbol_support.h"

namespace weft::meta {
namespace symbol_test {

// Page of one span or fence, compared with two small sources.
Complaints complaints_about(const std::string& page_text) {
  Symbols symbols({{.path = "weft/grid/grid.h",
                    .text = "// old_name, OldType\n"
                            "namespace weft::grid {\n"
                            "class Grid { int size() const; };\n"
                            "inline constexpr int kMost = 3;\n"
                            "}\n"},
                   {.path = "weft/train/step.h",
                    .text = "namespace weft::train {\n"
                            "void train_step(const grid::Grid& grid, int first_step);\n"
                            "const char* const kKey = \"step_ms\";\n"
                            "}\n"}});
  symbols.add_words({"cpu_small"});
  return symbol_complaints(parse_page({.path = "docs/a.md", .text = page_text}),
                           symbols,
                           {{"their_flag", "another program's"}});
}

TEST(Symbols, NamesThatTheCodeHasAreFound) {
  for (const char* page : {"`train_step`",
                           "`train_step()`",
                           "`train_step(grid, 1)`",
                           "`train::train_step`",
                           "`weft::train::train_step`",
                           "`Grid`",
                           "`Grid::size`",
                           "`grid::Grid::size()`",
                           "`kMost`"}) {
    EXPECT_EQ(complaints_about(page), Complaints{}) << page;
  }
}

TEST(Symbols, ANameThatIsGoneIsNamed) {
  for (const char* page :
       {"`old_name`", "`OldType`", "`old_step()`", "`Gird`", "`Grid::width`", "`kLeast`"}) {
    EXPECT_EQ(complaints_about(page).size(), 1u) << page;
  }
}

TEST(Symbols, ANameOfAnotherNamespaceIsNamed) {
  EXPECT_EQ(complaints_about("`grid::train_step`").size(), 1u);
}

TEST(Symbols, TextInStringsCountsForWordsAndNotForCode) {
  EXPECT_EQ(complaints_about("`step_ms`"), Complaints{});
  EXPECT_EQ(complaints_about("`step_ms()`").size(), 1u);
}

TEST(Symbols, WordsThatAreNoNamesAreLeftAlone) {
  for (const char* page : {"`deepep`",
                           "`add_NAME`",
                           "`std::string_view`",
                           "`a.b=c`",
                           "`3F7.dispatch`",
                           "`--some_flag`",
                           "`WEFT_RECIPES`",
                           "`cpu_small`",
                           "`their_flag`",
                           "gone_name without a span"}) {
    EXPECT_EQ(complaints_about(page), Complaints{}) << page;
  }
}

TEST(Symbols, CodeInAFenceIsHeldNameByName) {
  EXPECT_EQ(complaints_about("```cpp\ntrain_step(grid, first_step);  // as ever\n```\n"),
            Complaints{});
  EXPECT_EQ(complaints_about("```cpp\nrun_step(grid);\n```\n").size(), 1u);
  EXPECT_EQ(complaints_about("```text\nrun_step(grid);\n```\n"), Complaints{});
}

// File names without extension: recipes, reference runs, programs of the benches.
Names file_words() {
  namespace fs = std::filesystem;
  Names words;
  for (const char* folder : {"recipes", "tests/golden", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(WEFT_SOURCE_DIR) / folder)) {
      words.insert(entry.path().stem().string());
    }
  }
  return words;
}

// True where names may have come or gone since the branch that this one follows.
bool names_may_differ() {
  const auto changed = changed_files();
  return !changed || std::ranges::any_of(*changed, [](const std::string& path) {
    return path.ends_with(".md") || path.ends_with(".def") || path.ends_with(".h") ||
           path.ends_with(".cpp");
  });
}

// The program prints docs/config.md and docs/rules.md, and tests compare them.
TEST(Documents, EveryNameOfCodeIsInTheCode) {
  if (!names_may_differ()) return;
  std::vector<TextFile> sources = files_below("weft", {".h", ".cpp", ".def"});
  for (TextFile& file : files_below("tests", {".h", ".cpp"})) {
    if (!file.path.starts_with("tests/meta/")) sources.push_back(std::move(file));
  }
  Symbols symbols(sources);
  symbols.add_words(file_words());
  const Origins foreign{{"padding_idx", "an argument of PyTorch's embedding"},
                        {"odls_base_sigkill_timeout", "a parameter of Open MPI"}};
  Complaints complaints;
  for (const Page& page : documents()) {
    if (page.path == "docs/config.md" || page.path == "docs/rules.md") continue;
    append(complaints, symbol_complaints(page, symbols, foreign));
  }
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

}  // namespace symbol_test
}  // namespace weft::meta
