// One program holds the tests of nearly all folders, so that shared code is compiled once. Started
// as FOLDER_test it has only the tests of that folder; started as all_tests it has all.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/small_pages.h"
#include "tests/test_times.h"

namespace {

// Folder of tests/ that contains a test.
std::string folder_of(const testing::TestInfo& test) {
  const std::string tests = WEFT_SOURCE_DIR "/tests/";
  const std::string file = test.file();
  if (!file.starts_with(tests)) return {};
  return file.substr(tests.size(), file.find('/', tests.size()) - tests.size());
}

enum class Of { Folder, Others };

// Patterns for the tests of the folder, or for all others: whole suites, and single tests of suites
// with some in each.
std::string patterns(Of which, const std::string& folder) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string patterns;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    std::string some;
    int count = 0;
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if ((folder_of(test) == folder) != (which == Of::Folder)) continue;
      some += std::string(":") + suite.name() + "." + test.name();
      ++count;
    }
    patterns += count == suite.total_test_count() ? std::string(":") + suite.name() + ".*" : some;
  }
  return patterns;
}

// Requested filter, restricted to this folder. A filter's first '-' begins the excluded names.
std::string filter_for(const std::string& asked, const std::string& folder) {
  if (asked == "*") return patterns(Of::Folder, folder);
  if (asked.starts_with('-')) return patterns(Of::Folder, folder) + asked;
  const bool leaves_out = asked.find('-') != std::string::npos;
  return asked + (leaves_out ? "" : "-") + patterns(Of::Others, folder);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  testing::InitGoogleTest(&argc, argv);
  weft::note_test_times();
  const std::string ending = "_test";
  if (name.ends_with(ending)) {
    const std::string folder = name.substr(0, name.size() - ending.size());
    GTEST_FLAG_SET(filter, filter_for(GTEST_FLAG_GET(filter), folder));
    // Timed tests, and the started program, run as for users.
    if (folder != "measure" && folder != "cli") weft::use_small_pages();
  }
  return RUN_ALL_TESTS();
}
