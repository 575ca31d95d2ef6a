#include "weft/words/megatron/shell_words.h"

#include <algorithm>
#include <array>

namespace weft::words {
namespace {

constexpr std::string_view kSpaces = " \t\r\n", kOperators = "|;&<>";

class ShellLine {
 public:
  explicit ShellLine(std::string_view line) : line_(line) {}

  std::vector<std::string> words() {
    std::vector<std::string> first;
    do {
      std::vector<std::string> command = next_command();
      if (names_program(command)) return command;
      if (first.empty()) first = std::move(command);
    } while (at_ < line_.size());
    return first;
  }

 private:
  static bool names_program(const std::vector<std::string>& command) {
    return std::ranges::any_of(command, [](const std::string& word) {
      return word.ends_with(".py") || word == "-m";
    });
  }

  // Words up to an operator. A redirection's target is no word.
  std::vector<std::string> next_command() {
    std::vector<std::string> command;
    while (at_ < line_.size()) {
      const char c = line_[at_];
      if (kSpaces.find(c) != std::string_view::npos) {
        ++at_;
      } else if (kOperators.find(c) != std::string_view::npos) {
        const bool redirects = c == '<' || c == '>' || line_.substr(at_).starts_with("&>");
        while (at_ < line_.size() && kOperators.find(line_[at_]) != std::string_view::npos) ++at_;
        if (!redirects) return command;
        skip_target();
      } else {
        std::string word = next_word();
        const bool is_stream = word.size() == 1 && word[0] >= '0' && word[0] <= '9' &&
                               at_ < line_.size() && (line_[at_] == '>' || line_[at_] == '<');
        if (!word.empty() && !is_stream) command.push_back(std::move(word));
      }
    }
    return command;
  }

  void skip_target() {
    while (at_ < line_.size() && kSpaces.find(line_[at_]) != std::string_view::npos) ++at_;
    next_word();
  }

  std::string next_word() {
    std::string word;
    char quote = 0;
    for (; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == '\\' && quote != '\'') {
        if (++at_ == line_.size()) break;
        if (line_[at_] != '\n') word += line_[at_];
      } else if (quote != 0) {
        if (c == quote) {
          quote = 0;
        } else {
          word += c;
        }
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (kSpaces.find(c) != std::string_view::npos ||
                 kOperators.find(c) != std::string_view::npos) {
        break;
      } else {
        word += c;
      }
    }
    return word;
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> shell_words(std::string_view line) { return ShellLine(line).words(); }

}  // namespace weft::words
