// The list of faults that `make soak` plants: each can be planted, and names a test that there is.
#include <gtest/gtest.h>

#include <map>

#include "tests/meta/repository_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::meta {
namespace faults_test {

using Fault = std::map<std::string, std::string>;

std::vector<Fault> faults() {
  std::vector<Fault> all;
  for (const std::string& line : lines_of(base::read_text(WEFT_SOURCE_DIR "/tests/faults.txt"))) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with('#') || colon == line.npos) continue;
    const std::string key = line.substr(0, colon);
    if (key == "promise") all.emplace_back();
    all.back()[key] = line.substr(colon + 2);
  }
  return all;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A case of a parametrised suite is Name/Suite.Test/N; the filter may end in '*'.
bool has_test(std::string filter) {
  if (filter.ends_with('*')) filter.pop_back();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(j)->name();
      if (name.starts_with(filter)) return true;
    }
  }
  return false;
}

TEST(PlantedFaults, EachCanBePlantedAndNamesATest) {
  const std::vector<TextFile> files = files_below("weft", {".cpp", ".h", ".js"});
  const std::string page = base::read_text(WEFT_SOURCE_DIR "/CONTRIBUTING.md");
  EXPECT_EQ(faults().size(), 12u);
  for (const Fault& fault : faults()) {
    ASSERT_EQ(fault.size(), 5u) << fault.begin()->second;
    const std::string promise = fault.at("promise").substr(0, fault.at("promise").size() - 1);
    EXPECT_NE(page.find("| " + promise + " | `"), page.npos)
        << "not in CONTRIBUTING.md: " << promise;
    std::size_t found = 0;
    for (const TextFile& file : files) {
      if (!file.path.ends_with("/" + fault.at("file"))) continue;
      found += occurrences(file.text, fault.at("line"));
      EXPECT_EQ(occurrences(file.text, fault.at("fault")), 0u) << file.path << ": left in place";
    }
    EXPECT_EQ(found, 1u) << fault.at("file") << " has not exactly one: " << fault.at("line");
    const std::vector<std::string> words = words_of(fault.at("seen by"));
    ASSERT_EQ(words.size(), 2u) << fault.at("seen by");
    EXPECT_TRUE(words[0].ends_with("_test")) << words[0];
    EXPECT_TRUE(has_test(words[1])) << words[1];
  }
}

}  // namespace faults_test
}  // namespace weft::meta
