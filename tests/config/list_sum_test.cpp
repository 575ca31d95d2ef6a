#include "weft/config/list_sum.h"

#include <gtest/gtest.h>

#include "weft/config/codec.h"

namespace weft::config {
namespace list_sum_test {

using List = std::vector<std::string>;

TEST(ListSum, IsAsPythonReadsIt) {
  EXPECT_EQ(expand_list_sum("[0]*1+[1]*3"), (List{"0", "1", "1", "1"}));
  EXPECT_EQ(expand_list_sum("([0]*1+[1]*2)"), (List{"0", "1", "1"}));
  EXPECT_EQ(expand_list_sum("([0]*1+[1]*1)*2"), (List{"0", "1", "0", "1"}));
  EXPECT_EQ(expand_list_sum("2*([0]+[1])+[0]"), (List{"0", "1", "0", "1", "0"}));
  EXPECT_EQ(expand_list_sum("([0]*1+[1]*63)*1")->size(), 64u);
  EXPECT_EQ(expand_list_sum(" ( [1, 0] * 2 ) "), (List{"1", "0", "1", "0"}));
  EXPECT_EQ(expand_list_sum("((([1])))"), List{"1"});
  EXPECT_EQ(expand_list_sum("[1]*0+[0]"), List{"0"});
}

TEST(ListSum, AnythingElseIsNone) {
  for (const char* none : {"[0,1]",  // a plain list needs no expansion
                           "3",
                           "3*4",
                           "[0]*",
                           "[0]*[1]",
                           "([0]+[1]",
                           "[0]+[1])",
                           "[0]*-1",
                           "[0]*99999999999",
                           "[0]*65537",
                           "([0]*65536)*2",
                           "[0]+",
                           "[]*2",
                           "[(0)]*2",
                           "((((((((((((((((([0])))))))))))))))))"}) {
    EXPECT_EQ(expand_list_sum(none), std::nullopt) << none;
  }
}

}  // namespace list_sum_test
}  // namespace weft::config
