// Runs a fuzzer without libFuzzer, on its kept seeds and on a fixed number of random changes of
// them, equal in every run. `make test` uses it; tests/fuzz/run.sh looks for new paths. usage:
// PROGRAM SEED_FOLDER INPUTS
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace {

constexpr unsigned kSeed = 20261116;
constexpr std::size_t kLongest = 1 << 16;
constexpr int kMostChanges = 8;

std::vector<std::string> read_all(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);  // folders are unordered
  std::vector<std::string> all;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return all;
}

class Changes {
 public:
  explicit Changes(const std::vector<std::string>& seeds) : seeds_(seeds) {}

  std::string next() {
    std::string input = seeds_[below(seeds_.size())];
    for (std::size_t i = 1 + below(kMostChanges); i > 0; --i) change(input);
    if (input.size() > kLongest) input.resize(kLongest);
    return input;
  }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  void change(std::string& input) {
    const std::size_t at = below(input.size() + 1);
    const std::size_t length = std::min(1 + below(16), input.size() - at);
    switch (below(6)) {
      case 0:  // one bit
        if (at < input.size()) input[at] = char(input[at] ^ (1 << below(8)));
        return;
      case 1:  // any byte
        if (at < input.size()) input[at] = char(below(256));
        return;
      case 2:
        input.erase(at, length);
        return;
      case 3:  // repeat
        input.insert(at, std::string(input, at, length));
        return;
      case 4: {  // from another seed
        const std::string& other = seeds_[below(seeds_.size())];
        const std::size_t from = below(other.size() + 1);
        input.insert(at, other, from, 1 + below(64));
        return;
      }
      default:  // cut the end
        input.resize(at);
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937 random_{kSeed};
};

void run(const std::string& input) {
  try {
    LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(input.data()), input.size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\nthe input:\n", error.what());
    std::fwrite(input.data(), 1, input.size(), stderr);
    std::exit(1);
  }
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) {
    std::fprintf(stderr, "usage: %s SEED_FOLDER INPUTS\n", argument[0]);
    return 2;
  }
  const std::vector<std::string> seeds = read_all(argument[1]);
  if (seeds.empty()) {
    std::fprintf(stderr, "no seeds in %s\n", argument[1]);
    return 1;
  }
  for (const std::string& seed : seeds) run(seed);
  Changes changes(seeds);
  const int inputs = std::atoi(argument[2]);
  for (int i = 0; i < inputs; ++i) run(changes.next());
  std::printf("%zu seeds and %d changed inputs\n", seeds.size(), inputs);
}
