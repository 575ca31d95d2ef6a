#include "weft/schedule/node.h"

#include <charconv>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/schedule/piece_table.h"
#include "weft/schedule/text/quote.h"

namespace weft::schedule {
namespace {

// Unread rest of the text, and the whole for messages.
struct Cursor {
  std::string_view all;
  std::string_view rest;

  bool take(char c) {
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  }

  [[noreturn]] void fail(std::string_view wanted) const {
    throw base::ConfigError(base::text("node '{}': at position {} expected {}, as in 3F7.dispatch",
                                       quote(all),
                                       all.size() - rest.size(),
                                       wanted));
  }

  bool at_digit() const { return !rest.empty() && rest.front() >= '0' && rest.front() <= '9'; }

  // Numbers have no leading zeros, so that each node has one text.
  int number() {
    int value = 0;
    const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const auto length = static_cast<std::size_t>(end - rest.data());
    if (!at_digit() || status != std::errc{} || (rest.front() == '0' && length > 1)) {
      fail("a number");
    }
    rest.remove_prefix(length);
    return value;
  }

  std::string_view letters() {
    std::size_t length = 0;
    while (length < rest.size() && ((rest[length] >= 'a' && rest[length] <= 'z') ||
                                    (length > 0 && rest[length] >= '0' && rest[length] <= '9'))) {
      ++length;
    }
    const std::string_view word = rest.substr(0, length);
    rest.remove_prefix(length);
    return word;
  }
};

void parse_place(Cursor& cursor, Node& node) {
  if (cursor.at_digit()) {
    node.layer = cursor.number();
  } else if (cursor.take('c')) {
    node.chunk = cursor.number();
  }
  for (int i = 1; i < kDirections; ++i) {
    const auto direction = static_cast<Direction>(i);
    if (!cursor.take(word(direction).front())) continue;
    node.direction = direction;
    if (cursor.at_digit()) node.micro_batch = cursor.number();
    break;
  }
  if (!cursor.take('.')) cursor.fail("F, D, W, R, O, I or '.'");
}

Piece parse_piece(Cursor& cursor) {
  const Cursor start = cursor;
  const std::string_view name = cursor.letters();
  for (int i = 0; i < kPieces; ++i) {
    if (word(static_cast<Piece>(i)) == name) return static_cast<Piece>(i);
  }
  start.fail("a piece");
}

Part parse_part(Cursor& cursor) {
  const Cursor start = cursor;
  const std::string_view name = cursor.letters();
  for (int i = 1; i < kParts; ++i) {
    if (word(static_cast<Part>(i)) == name) return static_cast<Part>(i);
  }
  start.fail("a part");
}

bool starts_with_place(std::string_view text) {
  if (text.empty()) return false;
  const char first = text.front();
  const bool digit = first >= '0' && first <= '9';
  const bool chunk = first == 'c' && text.size() > 1 && text[1] >= '0' && text[1] <= '9';
  return digit || chunk || std::string_view("FDWROI").find(first) != std::string_view::npos;
}

}  // namespace

std::string_view word(Direction direction) {
  switch (direction) {
    case Direction::None:
      return "";
    case Direction::F:
      return "F";
    case Direction::D:
      return "D";
    case Direction::W:
      return "W";
    case Direction::R:
      return "R";
    case Direction::O:
      return "O";
    case Direction::I:
      return "I";
  }
  return "";
}

std::string print(const Node& node) {
  std::string text;
  if (node.layer != kNone) text += std::to_string(node.layer);
  if (node.chunk != kNone) text += 'c' + std::to_string(node.chunk);
  text += word(node.direction);
  if (node.micro_batch != kNone) text += std::to_string(node.micro_batch);
  if (!text.empty()) text += '.';
  text += word(node.piece);
  if (node.part != Part::None) (text += '.') += word(node.part);
  if (node.slice != kNone) text += '#' + std::to_string(node.slice);
  return text;
}

Node parse_node(std::string_view text) {
  Cursor cursor{text, text};
  Node node;
  if (starts_with_place(text)) parse_place(cursor, node);
  node.piece = parse_piece(cursor);
  if (cursor.take('.')) node.part = parse_part(cursor);
  if (cursor.take('#')) node.slice = cursor.number();
  if (!cursor.rest.empty()) cursor.fail("the end");
  return node;
}

}  // namespace weft::schedule
