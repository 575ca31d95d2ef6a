// Any lines as the words of a command line: a resolution or a ConfigError, for both audiences.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/resolution.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace weft::config;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> words = weft::base::split(text, '\n');
  for (const Audience audience : {Audience::Run, Audience::Perf}) {
    try {
      // A folder without recipes: reading them is another fuzzer's, and would take all the time.
      resolve_words("tests/fuzz/seeds/words", words, audience);
    } catch (const weft::base::ConfigError&) {
    }
  }
  return 0;
}
