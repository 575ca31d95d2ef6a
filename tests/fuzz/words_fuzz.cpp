// Any lines as the words of a command line: a resolution or a ConfigError, for both audiences.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/words/resolution.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace weft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> typed = base::split(text, '\n');
  for (const words::Audience audience : {words::Audience::Run, words::Audience::Perf}) {
    try {
      // Folder without recipes: another fuzzer reads recipes, which would take all the time.
      words::resolve_words("tests/fuzz/seeds/words", typed, audience);
    } catch (const base::ConfigError&) {
    }
  }
  return 0;
}
