#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "tests/meta/source_support.h"
#include "weft/base/text.h"

namespace weft::meta {
namespace comment_test {

using base::text;

// Upper bounds for comments of weft/ that begin with such a word: seven headers begin with their
// room's question, and the others are phrases behind code.
constexpr std::size_t kMostWithCapital = 15;
constexpr std::size_t kMostWithSmallLetter = 25;
constexpr std::size_t kShown = 5;

struct Beginning {
  std::string where;  // "path:line"
  std::string words;
};

constexpr std::array<std::string_view, 8>
    kHollow{"of", "what", "those", "whose", "where", "who", "the same", "likewise"};

bool is_hollow(std::string_view comment) {
  std::string small(comment.substr(0, 16));
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(kHollow, [&](std::string_view word) {
    return small.starts_with(word) &&
           (small.size() == word.size() ||
            std::isalpha(static_cast<unsigned char>(small[word.size()])) == 0);
  });
}

// Beginnings of the comments of a file. Lines of `//` that follow at one column are one comment.
std::vector<Beginning> beginnings(const TextFile& file) {
  const std::vector<std::string> lines = lines_of(file.text);
  const std::vector<std::string> codes = lines_of(uncommented(file.text));
  std::vector<Beginning> found;
  std::size_t last = std::string::npos;
  for (std::size_t i = 0; i < lines.size() && i < codes.size(); ++i) {
    std::size_t at = lines[i].find("//");
    while (at != std::string::npos && codes[i][at] != ' ') at = lines[i].find("//", at + 1);
    const bool alone = at != std::string::npos && lines[i].find_first_not_of(' ') == at;
    if (at != std::string::npos && !(alone && at == last)) {
      const std::size_t words = lines[i].find_first_not_of("/< ", at);
      if (words != std::string::npos) {
        found.push_back(
            {.where = text("{}:{}", file.path, i + 1), .words = lines[i].substr(words)});
      }
    }
    last = at;
  }
  return found;
}

std::vector<std::string> hollow_in(const std::string& code) {
  std::vector<std::string> words;
  for (const Beginning& b : beginnings({.path = "a.h", .text = code})) {
    if (is_hollow(b.words)) words.push_back(b.words);
  }
  return words;
}

TEST(Comments, BeginningsAreFoundBeforeAndBehindCode) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(hollow_in("// Of a rank.\nint x;  // what it is\n"),
            (Words{"Of a rank.", "what it is"}));
  EXPECT_EQ(hollow_in("// Rows\n// of a rank.\n"), Words{});
  EXPECT_EQ(hollow_in("int x;  // rows\n        // of a rank\n"), Words{});
  EXPECT_EQ(hollow_in("f(\"// Of\");\n"), Words{});
  EXPECT_EQ(hollow_in("// Offset.\n// Whosever.\n"), Words{});
  EXPECT_EQ(hollow_in("// Rows.\n\n// The same, sorted.\n"), Words{"The same, sorted."});
}

TEST(Comments, BeginWithTheNounOrTheVerb) {
  std::map<std::string, std::vector<Beginning>> rooms;
  std::size_t all = 0, capital = 0, small = 0;
  for (const TextFile& file : files_below("weft", {".h", ".cpp", ".def", ".cu", ".cuh"})) {
    const std::string room = file.path.substr(0, file.path.find('/', sizeof "weft/" - 1));
    for (Beginning& b : beginnings(file)) {
      ++all;
      if (!is_hollow(b.words)) continue;
      ++(std::isupper(static_cast<unsigned char>(b.words[0])) != 0 ? capital : small);
      rooms[room].push_back(std::move(b));
    }
  }
  Complaints first;
  for (const auto& [room, of_room] : rooms) {
    first.push_back(text("{}: {}", room, of_room.size()));
    for (std::size_t i = 0; i < std::min(of_room.size(), kShown); ++i) {
      first.push_back(text("  {}: {}", of_room[i].where, of_room[i].words));
    }
  }
  EXPECT_GT(all, 1000u);
  EXPECT_LE(capital, kMostWithCapital) << "begin with the noun or the verb, not with of, what, "
                                          "those, whose, where, who, the same:\n"
                                       << listed(first);
  EXPECT_LE(small, kMostWithSmallLetter) << listed(first);
}

}  // namespace comment_test
}  // namespace weft::meta
