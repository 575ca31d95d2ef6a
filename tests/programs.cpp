// One program holds the tests of nearly all folders: what they share is compiled once. It is started under the name of
// one of them, FOLDER_test, and then has only the tests of that folder; as `all_tests` it has all.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace {

// The folder of tests/ in which a test is written.
std::string folder_of(const testing::TestInfo& test) {
  const std::string tests = WEFT_SOURCE_DIR "/tests/";
  const std::string file = test.file();
  if (!file.starts_with(tests)) return {};
  return file.substr(tests.size(), file.find('/', tests.size()) - tests.size());
}

// What of a suite is not in the folder: all of it, or test by test where the suite has some in each.
std::string others_of(const testing::TestSuite& suite, const std::string& folder) {
  std::string others;
  bool has_own = false;
  for (int i = 0; i < suite.total_test_count(); ++i) {
    const testing::TestInfo& test = *suite.GetTestInfo(i);
    if (folder_of(test) == folder) {
      has_own = true;
    } else {
      others += std::string(":") + suite.name() + "." + test.name();
    }
  }
  return has_own ? others : std::string(":") + suite.name() + ".*";
}

// The filter that was asked for, less what is of other folders. After its first '-' a filter names what is left out.
std::string filter_for(const std::string& asked, const std::string& folder) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string others;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    others += others_of(*all.GetTestSuite(i), folder);
  }
  return asked + (asked.find('-') == std::string::npos ? "-" : "") + others;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  testing::InitGoogleTest(&argc, argv);
  const std::string ending = "_test";
  if (name.ends_with(ending)) {
    const std::string folder = name.substr(0, name.size() - ending.size());
    GTEST_FLAG_SET(filter, filter_for(GTEST_FLAG_GET(filter), folder));
  }
  return RUN_ALL_TESTS();
}
