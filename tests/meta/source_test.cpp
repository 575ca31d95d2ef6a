#include <gtest/gtest.h>

#include "tests/meta/source_support.h"

namespace weft::meta {
namespace source_test {

const std::vector<std::string>
    kSources{".h", ".cpp", ".def", ".cu", ".cuh", ".sh", ".py", ".cmake"};

std::vector<TextFile> sources() {
  std::vector<TextFile> all;
  for (const char* folder : {"weft", "tests", "bench", "tools", "cmake"}) {
    for (TextFile& file : files_below(folder, kSources)) all.push_back(std::move(file));
  }
  return all;
}

std::size_t found_in(const std::string& code) {
  return library_complaints({.path = "weft/base/a.cpp", .text = code}).size();
}

TEST(Code, CommentsAndLiteralsAreBlank) {
  EXPECT_EQ(code_of("a // b\nc"), "a     \nc");
  EXPECT_EQ(code_of("a /* b\n c */ d"), "a     \n      d");
  EXPECT_EQ(code_of("f(\"x\\\"y\", 'z')"), "f(      ,    )");
  EXPECT_EQ(code_of("f(R\"(\"a\")\");"), "f(        );");
  EXPECT_EQ(code_of("1'000 + x"), "1'000 + x");
  EXPECT_EQ(uncommented("f(\"x//\") // b\nR\"(//)\" /* c */"),
            "f(\"x//\")     \nR\"(//)\"        ");
}

TEST(Library, CallsThatAreForTheCommandLineAreNamed) {
  for (const char* code : {"std::cout << 1;",
                           "cerr << 1;",
                           "std::printf(\"a\");",
                           "::fprintf(stderr, \"a\");",
                           "puts(\"a\");",
                           "exit(1);",
                           "std::abort();",
                           "::_exit(2);",
                           "const char* a = std::getenv(\"A\");",
                           "if (x) std::terminate();"}) {
    EXPECT_EQ(found_in(code), 1u) << code;
  }
}

TEST(Library, WordsAndMembersAreNotCalls) {
  for (const char* code : {"// exit(1)",
                           "throw Error(\"abort(2)\");",
                           "program.exit(request);",
                           "stream->abort();",
                           "std::snprintf(b, 3, \"a\");",
                           "int exit_code = 0;",
                           "void on_exit(int);"}) {
    EXPECT_EQ(found_in(code), 0u) << code;
  }
}

TEST(Library, NothingBelowTheCommandLinePrintsExitsOrReadsTheEnvironment) {
  Complaints complaints;
  std::size_t judged = 0;
  for (const TextFile& file : files_below("weft", {".h", ".cpp", ".cu", ".cuh"})) {
    if (file.path.starts_with("weft/cli/")) continue;
    append(complaints, library_complaints(file));
    ++judged;
  }
  EXPECT_GT(judged, 100u);
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

TEST(Files, ALongFileNeedsAReasonAndAShortOneMayNotKeepIt) {
  const TextFile tall{.path = "weft/a.cpp", .text = std::string(kMostLines + 1, '\n')};
  const TextFile small{.path = "weft/a.cpp", .text = "\n"};
  EXPECT_EQ(length_complaints(tall, {}).size(), 1u);
  EXPECT_EQ(length_complaints(tall, {{"weft/a.cpp", "a table"}}).size(), 0u);
  EXPECT_EQ(length_complaints(small, {{"weft/a.cpp", "a table"}}).size(), 1u);
}

TEST(Files, NamesSayWhatIsInside) {
  EXPECT_EQ(name_complaints("weft/base/utils.h").size(), 1u);
  EXPECT_EQ(name_complaints("weft/common/text.h").size(), 1u);
  EXPECT_EQ(name_complaints("tests/comm/misc_test.cpp").size(), 1u);
  EXPECT_EQ(name_complaints("weft/base/text.h").size(), 0u);
}

TEST(Files, UnfinishedWorkIsNotMarked) {
  const std::string mark = std::string("TO") + "DO";
  EXPECT_EQ(unfinished_complaints({.path = "a.cpp", .text = "// " + mark + ": later\n"}).size(),
            1u);
  EXPECT_EQ(unfinished_complaints({.path = "a.cpp", .text = "// what to do\n"}).size(), 0u);
}

TEST(Files, EveryFileIsShortWellNamedAndFinished) {
  const Reasons reasons;
  const std::vector<TextFile> files = sources();
  ASSERT_GT(files.size(), 200u);
  Complaints complaints;
  for (const TextFile& file : files) {
    append(complaints, length_complaints(file, reasons));
    append(complaints, name_complaints(file.path));
    append(complaints, unfinished_complaints(file));
  }
  for (const TextFile& page : files_below("", {".md", "Makefile", "CMakeLists.txt", ".yaml"})) {
    append(complaints, unfinished_complaints(page));
  }
  EXPECT_TRUE(complaints.empty()) << listed(complaints);
}

}  // namespace source_test
}  // namespace weft::meta
