// Command lines of the documents and of --help run as written, with fewer steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "tests/meta/page_support.h"
#include "tests/meta/shell_support.h"
#include "tests/soak.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::meta {
namespace examples_test {

const std::set<std::string> kCommands{"train", "check", "plan", "memory", "report", "perf"};
// Commands of a block that make inputs of its other commands.
const std::set<std::string> kBefore{"data", "schedule"};

// Searches, orders and traces of large runs take seconds; the plan page has a test of its own.
// `make soak` runs these too.
bool takes_long(const std::string& words) {
  const bool simulates = words.find("--simulate") != std::string::npos;
  return (words.starts_with("plan ") && !simulates) ||
         words.find("--trace=") != std::string::npos ||
         words.find(" --schedule") != std::string::npos;
}

// Command with fewer steps.
std::string shortened(const std::string& words) {
  std::string line;
  const std::vector<std::string> all = words_of(words);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool steps = i > 0 && all[i - 1] == "--max_steps";
    const bool first_timed = i > 0 && all[i - 1] == "--eval_time_start_step";
    line += (i > 0 ? " '" : "'") + (steps ? "4" : first_timed ? "2" : all[i]) + "'";
  }
  if (words.starts_with("train ")) line += " train.train_iters=2";
  return line;
}

// Blocks to paste, and spans that start the built program.
std::vector<std::string> commands_to_paste(Page page) {
  std::erase_if(page.spans, [](const std::string& span) {
    return !span.starts_with("build/release/bin/weft ");
  });
  return page.commands();
}

// Empty: the span names a command, but is not meant for pasting.
std::string words_to_run(const std::string& command) {
  const std::vector<std::string> words = weft_words(command);
  if (words.size() < 2 || !(kCommands.contains(words[0]) || kBefore.contains(words[0]))) return {};
  std::string line;
  for (const std::string& word : words) {
    if (leaves_open(word)) return {};
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

bool has_examples(const Page& page) {
  return std::ranges::any_of(commands_to_paste(page), [](const std::string& command) {
    return !words_to_run(command).empty();
  });
}

// Pages and help texts, in which a command may read what an earlier one wrote. page_test.cpp holds
// that the program takes the words of all pages.
std::vector<Page> pages_with_examples() {
  std::vector<Page> pages;
  std::ranges::copy_if(documents(), std::back_inserter(pages), has_examples);
  pages = third_or_all(pages, 1);
  for (const std::string& command : kCommands) {
    Page help{.path = "weft " + command + " --help"};
    for (const std::string& line :
         lines_of(shell("'" WEFT_BINARY "' " + command + " --help").said)) {
      const std::size_t at = line.find("weft ");
      const bool example = line.starts_with("Example") || line.starts_with("         weft ");
      if (example && at != std::string::npos) {
        help.spans.push_back("build/release/bin/" + line.substr(at));
      }
    }
    EXPECT_FALSE(help.spans.empty()) << command << " --help shows no example";
    pages.push_back(help);
  }
  return pages;
}

// Makes a reader's files: a model's folder, token ids and a text.
void lay_out(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  fs::remove_all(folder);
  fs::create_directories(folder / "corpus");
  for (const char* shared : {"docs", "recipes", "tests", "hardware"}) {
    fs::create_directory_symlink(fs::path(WEFT_SOURCE_DIR) / shared, folder / shared);
  }
  fs::copy(fs::path(WEFT_SOURCE_DIR) / "tests/golden/qwen3_moe_tiny", folder / "HF");
  fs::copy_file(fs::path(WEFT_SOURCE_DIR) / "recipes/corpus.txt", folder / "corpus/de.txt");
  std::string ids;
  for (int line = 0; line < 64; ++line) {
    ids += "{\"tokens\": [";
    for (int i = 0; i < 128; ++i)
      ids += std::to_string((line + i) % 256) + (i < 127 ? "," : "]}\n");
  }
  for (const char* name : {"ids.jsonl", "corpus.jsonl"}) base::write_whole(folder / name, ids);
  std::string npy(
      "\x93NUMPY\x01\x00\x76\x00{'descr': '<u2', 'fortran_order': False, 'shape': (4,)}",
      65);
  npy.resize(127, ' ');
  base::write_whole(folder / "more.npy", npy + "\n" + std::string("\1\0\2\0\3\0\4\0", 8));
}

// Training that needs a GPU or a missing part is refused with these words.
bool lacks_machine(const std::string& said) {
  for (const char* reason : {"does not run in this build",
                             "libweft_",
                             "NVIDIA driver",
                             "no launcher started",
                             "of host memory"}) {
    if (said.find(reason) != std::string::npos) return true;
  }
  return false;
}

TEST(Examples, EveryCommandLineOfThePagesRuns) {
  namespace fs = std::filesystem;
  const bool all = soaks();
  const fs::path folder = fs::path(::testing::TempDir()) / "weft_examples";
  std::set<std::string> done;
  int ran = 0;
  for (const Page& page : pages_with_examples()) {
    lay_out(folder);
    for (const std::string& command : commands_to_paste(page)) {
      const std::string words = words_to_run(command);
      if (words.empty() || (!all && takes_long(words)) || !done.insert(page.path + words).second) {
        continue;
      }
      const Ran outcome =
          shell("cd '" + folder.string() + "' && CUDA_VISIBLE_DEVICES=-1 '" WEFT_BINARY "' " +
                shortened(words));
      ++ran;
      // A verdict (illegal, too large) is an answer; a rejected word is not.
      const bool judged =
          (!words.starts_with("train ") && outcome.said.find("not legal") != std::string::npos) ||
          outcome.said.find("does not fit") != std::string::npos ||
          (outcome.code == 1 && words.find("--against") != std::string::npos);
      EXPECT_TRUE(outcome.code == 0 || judged ||
                  (words.starts_with("train ") && lacks_machine(outcome.said)))
          << page.path << ": weft " << words << "\nexit " << outcome.code << "\n"
          << outcome.said.substr(0, 2000);
    }
  }
  fs::remove_all(folder);
  EXPECT_GT(ran, 15);
}

}  // namespace examples_test
}  // namespace weft::meta
