#include "weft/schedule/text/text.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/schedule/models_support.h"
#include "weft/base/error.h"
#include "weft/schedule/builders/pipeline.h"

namespace weft::schedule {
namespace text_test {

bool same(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.entries, b.entries, [](const Entry& x, const Entry& y) {
    return x.node == y.node && x.lane == y.lane && x.waits == y.waits;
  });
}

TEST(GraphText, BuilderGraphsParseBack) {
  for (const std::string layers : {"d", "m", "dm", "mdm"}) {
    for (const std::int64_t ep : {1, 4}) {
      const Anatomy anatomy = describe(tied_model_of(layers, ep), kEverySum);
      for (const Graph& graph : {build_training(anatomy, {.micro_batches = 3}),
                                 build_forward(anatomy, {.micro_batches = 2})}) {
        const Graph parsed = parse_graph(print(graph));
        EXPECT_TRUE(same(parsed, graph));
        EXPECT_EQ(print(parsed), print(graph));
      }
    }
  }
}

TEST(GraphText, RandomGraphsOnAllLanesParseBack) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Graph graph;
    for (int i = 0; i < 40; ++i) {
      Entry entry{.node = {.layer = i,
                           .piece = static_cast<Piece>(random() % kPieces),
                           .slice = static_cast<int>(random() % 3) - 1},
                  .lane = static_cast<Lane>(random() % kLanes),
                  .waits = {}};
      for (int wait = 0; wait < i; ++wait) {
        if (random() % 8 == 0) entry.waits.push_back(wait);
      }
      graph.entries.push_back(std::move(entry));
    }
    const Graph parsed = parse_graph(print(graph));
    EXPECT_TRUE(same(parsed, graph));
    EXPECT_EQ(print(parsed), print(graph));
  }
}

TEST(GraphText, BlanksAndCommentsAreSkipped) {
  const Graph graph = parse_graph(
      "# a schedule\n\n  compute   F0.embed  \r\n\t\nep 0F0.counts  <  F0.embed\n# end");
  EXPECT_EQ(print(graph), "compute  F0.embed\nep       0F0.counts < F0.embed\n");
  EXPECT_TRUE(parse_graph("").entries.empty());
}

struct Malformed {
  std::string text;
  std::string complaint;
};

TEST(GraphText, MalformedLinesAreErrorsThatNameTheLine) {
  const std::vector<Malformed> cases{
      {"compute F0.embed\nep 0F0.counts < 0F0.route\n", "line 2: waits for '0F0.route'"},
      {"compute F0.embed < F0.embed\n", "line 1: waits for 'F0.embed'"},
      {"compute F0.embed < 0F0.mlp\ncompute 0F0.mlp\n", "line 1: waits for '0F0.mlp'"},
      {"compute F0.embed\n\n# again\ncompute F0.embed\n", "line 4: F0.embed is issued twice"},
      {"compute F0.embed\nep F0.embed\n", "line 2: F0.embed is issued twice"},
      {"gpu F0.embed\n", "line 1: 'gpu' is not a lane"},
      {"F0.embed\n", "line 1: 'F0.embed' is not a lane"},
      {"compute F0.embed\nCompute F1.embed\n", "line 2: 'Compute' is not a lane"},
      {"compute\n", "line 1: a lane without a node"},
      {"compute F0.embed F1.embed\n", "line 1: expected '<'"},
      {"compute F0.embed <\n", "line 1: expected '<' and the nodes waited for"},
      {"compute F0.embed\nep 0F0.count\n", "line 2: node '0F0.count': at position 4"},
      {"compute F0.embed\nep 0F0.counts < F00.embed\n", "line 2: node 'F00.embed': at position 1"},
      {"compute\tF0.embed\n", R"(line 1: 'compute\tF0.embed' is not a lane)"},
      {"compute \xce\xb4\n", "line 1: node '\xce\xb4': at position 0"},
  };
  for (const Malformed& wrong : cases) {
    const std::string complaint = graph_complaint(wrong.text);
    EXPECT_NE(complaint.find(wrong.complaint), std::string::npos)
        << wrong.text << "gave: " << complaint;
  }
}

TEST(GraphText, ErrorsStayShortWhateverTheLine) {
  const std::string longest(100000, 'x');
  for (const std::string& text : {longest, "compute " + longest, "compute F0.embed < " + longest}) {
    const std::string complaint = graph_complaint(text);
    EXPECT_FALSE(complaint.empty());
    EXPECT_LT(complaint.size(), 600u);
  }
}

}  // namespace text_test
}  // namespace weft::schedule
