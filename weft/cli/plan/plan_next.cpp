#include "weft/cli/plan/plan_next.h"

#include <algorithm>
#include <cctype>

#include "weft/base/text.h"

namespace weft::cli {
namespace {

using base::text;

std::string for_shell(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Words that repeat the question, without options about the answer.
std::string question_words(const PlanOptions& options) {
  const SearchOptions& search = options.search;
  const SearchOptions usual;
  std::string line = "weft plan";
  const auto add = [&](const std::string& word) { line += " " + for_shell(word); };
  for (const std::string& word : options.run.words) add(word);
  add(text("--gpus={}", search.gpus));
  if (!options.gpu.empty()) add("--gpu=" + options.gpu);
  if (search.batch != 0) add(text("--gbs={}", search.batch));
  if (search.sequence != 0) add(text("--seq={}", search.sequence));
  if (!search.precision.empty()) add("--precision=" + search.precision);
  if (search.top != usual.top) add(text("--top={}", search.top));
  if (search.is_safe) add("--safe");
  if (!options.program.empty()) add("--program=" + options.program);
  if (options.imbalance != PlanOptions().imbalance) add("--imbalance=" + options.imbalance);
  return line;
}

}  // namespace

std::vector<plan::NextCommand> next_commands(const PlanOptions& options) {
  const std::string line = question_words(options);
  return {{line + " --overrides", "place 1 as words for Megatron Bridge's command line, or Weft's"},
          {line + " --write=best.yaml", "place 1 as a recipe for weft check and weft train"},
          {line + " --explain=2", "place 2 in detail; with --overrides or --write, that one"}};
}

}  // namespace weft::cli
