#include "weft/config/pipeline.h"

#include <cctype>
#include <optional>

#include "weft/base/text.h"

namespace weft::config {
namespace {

// More symbols than any model has layers; also bounds what repeats may unfold to.
constexpr std::size_t kMostSymbols = 100000;
constexpr int kDeepestNesting = 16;

// Unfolds the repeats of a layout text: "Et*3|(tt|)*2L" to "Ettt|tt|tt|L".
class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  // The unfolded symbols, or nothing and `complaint`.
  std::optional<std::string> read() {
    std::string symbols = sequence(0);
    if (complaint_.empty() && at_ < text_.size()) fail("')' without '('");
    if (!complaint_.empty()) return std::nullopt;
    return symbols;
  }
  const std::string& complaint() const { return complaint_; }

 private:
  std::string sequence(int depth) {
    std::string all;
    while (complaint_.empty() && at_ < text_.size() && text_[at_] != ')') {
      std::string item = element(depth);
      if (!complaint_.empty()) break;
      const std::size_t times = repeats();
      if (item.size() * times + all.size() > kMostSymbols) {
        fail("it unfolds to too many symbols");
        break;
      }
      for (std::size_t i = 0; i < times; ++i) all += item;
    }
    return all;
  }

  std::string element(int depth) {
    const char symbol = text_[at_];
    if (symbol == ',' || symbol == ' ') {
      ++at_;
      return "";
    }
    if (symbol == '(') {
      if (depth == kDeepestNesting) return fail("brackets nest too deep");
      ++at_;
      std::string inner = sequence(depth + 1);
      if (!complaint_.empty()) return "";
      if (at_ == text_.size()) return fail("'(' without ')'");
      ++at_;
      return inner;
    }
    if (symbol == 'm') return fail("multi-token prediction layers ('m') are not built yet");
    if (symbol != 'E' && symbol != 't' && symbol != 'L' && symbol != '|') {
      return fail("use E, t, L, |, brackets and *n");
    }
    ++at_;
    return std::string(1, symbol);
  }

  std::size_t repeats() {
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const std::optional<std::int64_t> times = base::parse_integer(text_.substr(begin, at_ - begin));
    if (!times || *times < 1 || *times > std::int64_t{kMostSymbols}) {
      fail("'*' wants a number of repeats, from 1");
      return 0;
    }
    return static_cast<std::size_t>(*times);
  }

  std::string fail(const char* why) {
    if (complaint_.empty()) complaint_ = base::text("at character {}: {}", at_ + 1, why);
    return "";
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string complaint_;
};

std::vector<Stage> cut_stages(const std::string& symbols) {
  std::vector<Stage> stages(1);
  int layer = 0;
  for (const char symbol : symbols) {
    switch (symbol) {
      case '|':
        stages.push_back({.first_layer = layer});
        break;
      case 'E':
        stages.back().embedding = true;
        break;
      case 'L':
        stages.back().loss = true;
        break;
      default:
        ++stages.back().layers;
        ++layer;
    }
  }
  return stages;
}

std::int64_t count_of(const std::string& symbols, char symbol) {
  return std::ranges::count(symbols, symbol);
}

Stages from_layout(const ModelConfig& model) {
  constexpr const char* kKey = "model.pipeline_model_parallel_layout";
  LayoutReader reader(model.pipeline_model_parallel_layout);
  const std::optional<std::string> symbols = reader.read();
  if (!symbols) {
    return {.all = {},
            .complaints = {base::text("{} = '{}', {}",
                                      kKey,
                                      model.pipeline_model_parallel_layout,
                                      reader.complaint())}};
  }
  std::vector<std::string> complaints;
  const std::int64_t pp = model.pipeline_model_parallel_size, vpp = virtual_stages(model);
  const std::int64_t stages = count_of(*symbols, '|') + 1;
  if (stages != pp * vpp) {
    complaints.push_back(base::text("{} has {} stages for pp * vpp = {}*{} = {}: use that many",
                                    kKey,
                                    stages,
                                    pp,
                                    vpp,
                                    pp * vpp));
  }
  if (count_of(*symbols, 'E') != 1 || symbols->front() != 'E') {
    complaints.push_back(base::text("{}: E (embedding) must be there once, and first", kKey));
  }
  if (count_of(*symbols, 'L') != 1 || symbols->back() != 'L') {
    complaints.push_back(base::text("{}: L (loss) must be there once, and last", kKey));
  }
  if (count_of(*symbols, 't') != model.num_layers) {
    complaints.push_back(base::text("{} has {} layers (t) for model.num_layers = {}: use that many",
                                    kKey,
                                    count_of(*symbols, 't'),
                                    model.num_layers));
  }
  if (!complaints.empty()) return {.all = {}, .complaints = std::move(complaints)};
  return {.all = cut_stages(*symbols), .complaints = {}};
}

Stages equal_stages(const ModelConfig& model) {
  const std::int64_t pp = model.pipeline_model_parallel_size, vpp = virtual_stages(model);
  const std::int64_t stages = pp * vpp;
  if (model.num_layers % stages != 0) {
    return {.all = {},
            .complaints = {base::text(
                "model.num_layers = {} is not divisible by pp * vpp = {}*{} = {}: use a multiple, "
                "or say in model.pipeline_model_parallel_layout which stage holds what",
                model.num_layers,
                pp,
                vpp,
                stages)}};
  }
  const int each = static_cast<int>(model.num_layers / stages);
  Stages result;
  for (int stage = 0; stage < stages; ++stage) {
    result.all.push_back({.first_layer = stage * each,
                          .layers = each,
                          .embedding = stage == 0,
                          .loss = stage + 1 == stages});
  }
  return result;
}

}  // namespace

Stages stages_of(const ModelConfig& model) {
  return model.pipeline_model_parallel_layout.empty() ? equal_stages(model) : from_layout(model);
}

std::int64_t virtual_stages(const ModelConfig& model) {
  return model.virtual_pipeline_model_parallel_size.value_or(1);
}

std::int64_t micro_batch_group(const ModelConfig& model) {
  return model.microbatch_group_size_per_vp_stage.value_or(model.pipeline_model_parallel_size);
}

bool overlaps_p2p(const Config& config) {
  const CommOverlapConfig& overlap = config.comm_overlap;
  if (overlap.overlap_p2p_comm) return *overlap.overlap_p2p_comm;
  if (overlap.batch_p2p_comm) return !*overlap.batch_p2p_comm;
  return virtual_stages(config.model) > 1;
}

}  // namespace weft::config
