#include "weft/schedule/node.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

#include "tests/schedule/models_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/schedule/meeting.h"

namespace weft::schedule {
namespace node_test {

constexpr std::array kDirections{Direction::None,
                                 Direction::F,
                                 Direction::D,
                                 Direction::W,
                                 Direction::R,
                                 Direction::O,
                                 Direction::I};
constexpr std::array kNumbers{kNone, 0, 1, 9, 10, 907, std::numeric_limits<int>::max()};

// Every place of the grammar: layer, chunk or none; direction or none; micro-batch or none.
std::vector<Node> every_place() {
  std::vector<Node> places;
  for (const Direction direction : kDirections) {
    for (const int micro_batch : kNumbers) {
      if (direction == Direction::None && micro_batch != kNone) continue;
      for (const int number : kNumbers) {
        places.push_back({.layer = number, .direction = direction, .micro_batch = micro_batch});
        if (number == kNone) continue;
        places.push_back({.chunk = number, .direction = direction, .micro_batch = micro_batch});
      }
    }
  }
  return places;
}

TEST(Node, EveryNodeOfTheGrammarHasOneTextThatParsesBack) {
  std::set<std::string> texts;
  std::size_t nodes = 0;
  for (Node node : every_place()) {
    for (int piece = 0; piece < kPieces; ++piece) {
      node.piece = static_cast<Piece>(piece);
      for (int part = 0; part < kParts; ++part) {
        node.part = static_cast<Part>(part);
        node.slice = kNumbers[static_cast<std::size_t>(piece + part) % kNumbers.size()];
        const std::string text = print(node);
        ASSERT_TRUE(parse_node(text) == node) << text;
        texts.insert(text);
        ++nodes;
      }
    }
  }
  EXPECT_EQ(texts.size(), nodes);
}

TEST(Node, RandomNodesParseBack) {
  std::mt19937 random(7);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  const auto number = [&] {
    return below(2) == 0 ? kNone : static_cast<int>(random() >> (1 + below(31)));
  };
  for (int i = 0; i < 20000; ++i) {
    Node node{.direction = kDirections[static_cast<std::size_t>(below(5))],
              .piece = static_cast<Piece>(below(kPieces)),
              .part = static_cast<Part>(below(kParts)),
              .slice = number()};
    (below(2) == 0 ? node.layer : node.chunk) = number();
    if (node.direction != Direction::None) node.micro_batch = number();
    ASSERT_TRUE(parse_node(print(node)) == node) << print(node);
  }
}

TEST(Node, TextsReadAsDocumented) {
  EXPECT_EQ(
      print({.layer = 3, .direction = Direction::F, .micro_batch = 7, .piece = Piece::Dispatch}),
      "3F7.dispatch");
  EXPECT_EQ(print({.direction = Direction::F, .micro_batch = 7, .piece = Piece::Embed}),
            "F7.embed");
  EXPECT_EQ(print({.chunk = 1, .direction = Direction::F, .micro_batch = 3, .piece = Piece::Send}),
            "c1F3.send");
  EXPECT_EQ(print({.piece = Piece::Reduce, .part = Part::Dense, .slice = 2}), "reduce.dense#2");
  EXPECT_EQ(print({.piece = Piece::Optimizer}), "optimizer");
}

TEST(Node, NoTwoPiecesAndNoTwoPartsShareAWord) {
  std::set<std::string_view> pieces, parts;
  for (int i = 0; i < kPieces; ++i) pieces.insert(word(static_cast<Piece>(i)));
  for (int i = 1; i < kParts; ++i) parts.insert(word(static_cast<Part>(i)));
  EXPECT_EQ(pieces.size(), static_cast<std::size_t>(kPieces));
  EXPECT_EQ(parts.size(), static_cast<std::size_t>(kParts - 1));
  EXPECT_FALSE(pieces.contains("") || parts.contains(""));
}

struct Malformed {
  std::string text;
  std::size_t position;
};

TEST(Node, MalformedTextsAreErrorsThatNameThePosition) {
  const std::string digits(5000, '9');
  const std::vector<Malformed> cases{
      {"", 0},
      {".", 0},
      {" ", 0},
      {" optimizer", 0},
      {"optimizer ", 9},
      {"Optimizer", 1},
      {"optimizers", 0},
      {"optimizer.", 10},
      {"optimizer#", 10},
      {"optimizer#-1", 10},
      {"optimizer#+1", 10},
      {"optimizer#01", 10},
      {"optimizer#1x", 11},
      {"optimizer#1#2", 11},
      {"reduce.sparse", 7},
      {"reduce.dense.dense", 12},
      {"reduce#1.dense", 8},
      {"3", 1},
      {"3F", 2},
      {"3F7", 3},
      {"3F7.", 4},
      {"3F7..mlp", 4},
      {"3F7mlp", 3},
      {"3f7.mlp", 1},
      {"3FD7.mlp", 2},
      {"3F7.3F7.mlp", 4},
      {"03F7.mlp", 0},
      {"3F07.mlp", 2},
      {"00F0.mlp", 0},
      {"-3F7.mlp", 0},
      {"c", 0},
      {"cF7.send", 0},
      {"c1c2F7.send", 2},
      {"3c1F7.send", 1},
      {"c01F7.send", 1},
      {"2147483648F0.mlp", 0},
      {"0F99999999999999999999.mlp", 2},
      {digits + "F0.mlp", 0},
      {"0F" + digits + ".mlp", 2},
      {"optimizer#" + digits, 10},
      {std::string("optimizer\0", 10), 9},
      {std::string("\0", 1), 0},
      {"3F7.dispatch\n", 12},
      {"3F7.\xce\xb4ispatch", 4},
      {"\xf0\x9f\xa7\xb5", 0},
      {"\xd9\xa3"
       "F7.mlp",
       0},
      {"3F7.mlp\xff", 7},
  };
  for (const Malformed& wrong : cases) {
    const std::string complaint = node_complaint(wrong.text);
    const std::string position = base::text(": at position {} expected", wrong.position);
    EXPECT_NE(complaint.find(position), std::string::npos)
        << "'" << wrong.text.substr(0, 80) << "' gave: " << complaint.substr(0, 300);
    EXPECT_LT(complaint.size(), 200u) << "the message grows with the input";
  }
}

TEST(Node, AReceiveIsTheOperationOfItsSend) {
  const auto operation = [](const char* name) { return print(meeting_of(parse_node(name))); };
  EXPECT_EQ(operation("c1F3.receive"), "c0F3.send");
  EXPECT_EQ(operation("c1D3.receive"), "c2D3.send");
  EXPECT_EQ(operation("c1F3.send"), "c1F3.send");
  EXPECT_EQ(operation("3F7.dispatch"), "3F7.dispatch");
}

// One byte of a valid text replaced, removed or doubled: another node's text or a ConfigError.
TEST(Node, DamagedTextsNeverParseToANodeOfAnotherText) {
  std::mt19937 random(11);
  for (const std::string good :
       {"3F7.dispatch", "c12D345.experts.fc1#6", "reduce.dense#2", "W0.embed"}) {
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string damaged = good;
        switch (random() % 3) {
          case 0:
            damaged[at] = static_cast<char>(byte);
            break;
          case 1:
            damaged.insert(at, 1, static_cast<char>(byte));
            break;
          default:
            damaged.erase(at, 1 + static_cast<std::size_t>(byte) % 3);
        }
        if (!node_complaint(damaged).empty()) continue;
        EXPECT_EQ(print(parse_node(damaged)), damaged);
      }
    }
  }
}

}  // namespace node_test
}  // namespace weft::schedule
