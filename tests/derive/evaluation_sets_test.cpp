#include "weft/derive/evaluation_sets.h"

#include <gtest/gtest.h>

namespace weft::derive {
namespace evaluation_sets_test {

EvaluationSet set_of(const std::string& entry) {
  config::DatasetConfig dataset;
  dataset.valid_data_path = {entry};
  return evaluation_sets_of(dataset).at(0);
}

TEST(EvaluationSizes, AreCalledByTheLastPartOfTheirPathOrAsTheUserSays) {
  for (const auto& [entry, name, path] :
       {std::array<std::string, 3>{"data/books", "books", "data/books"},
        {"data/books/", "books", "data/books/"},
        {"books.txt", "books.txt", "books.txt"},
        {"novels=data/books", "novels", "data/books"},
        {"data/a=b/books", "books", "data/a=b/books"},
        {"novels=data/a=b", "novels", "data/a=b"},
        {"novels=", "novels", ""},
        {"=data", "", "data"}}) {
    EXPECT_EQ(set_of(entry).name, name) << entry;
    EXPECT_EQ(set_of(entry).path, path) << entry;
  }
}

}  // namespace evaluation_sets_test
}  // namespace weft::derive
