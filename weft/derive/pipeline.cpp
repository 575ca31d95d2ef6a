#include "weft/derive/pipeline.h"

#include <cctype>
#include <optional>

#include "weft/base/text.h"

namespace weft::derive {

using namespace config;
namespace {

// More symbols than any model has layers; also bounds the expansion of repeats.
constexpr std::size_t kMostSymbols = 100000;
constexpr int kDeepestNesting = 16;

// Expands the repeats of a layout text: "Et*3|(tt|)*2L" to "Ettt|tt|tt|L".
class LayoutReader {
 public:
  explicit LayoutReader(std::string_view text) : text_(text) {}

  // Expanded symbols; nullopt: see `complaint`.
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
    if (std::string_view("EtmL|").find(symbol) == std::string_view::npos) {
      return fail("use E, t, m, L, |, brackets and *n");
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
      case 'm':
        ++stages.back().mtp_layers;
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
  if (count_of(*symbols, 'm') != model.mtp_num_layers.value_or(0)) {
    complaints.push_back(
        base::text("{} has {} multi-token prediction layers (m) for model.mtp_num_layers = {}: use "
                   "that many",
                   kKey,
                   count_of(*symbols, 'm'),
                   model.mtp_num_layers.value_or(0)));
  }
  if (!complaints.empty()) return {.all = {}, .complaints = std::move(complaints)};
  return {.all = cut_stages(*symbols), .complaints = {}};
}

Stages refused(std::string complaint) { return {.all = {}, .complaints = {std::move(complaint)}}; }

// Layers per pipeline rank, as even as the keys ask; empty, with `complaint`, if they do not
// divide.
std::vector<std::int64_t> layers_of_ranks(const ModelConfig& model, std::string& complaint) {
  const std::int64_t pp = model.pipeline_model_parallel_size, vpp = virtual_stages(model);
  const std::int64_t counted = (model.account_for_embedding_in_pipeline_split ? 1 : 0) +
                               (model.account_for_loss_in_pipeline_split ? 1 : 0);
  const std::optional<std::int64_t> first = model.num_layers_in_first_pipeline_stage;
  const std::optional<std::int64_t> last = model.num_layers_in_last_pipeline_stage;
  const std::int64_t middle_ranks = pp - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t middle = model.num_layers + counted - first.value_or(0) - last.value_or(0);
  const bool whole = first.value_or(0) % vpp == 0 && last.value_or(0) % vpp == 0;
  const bool fits = !whole             ? false
                    : middle_ranks > 0 ? middle >= 0 && middle % (middle_ranks * vpp) == 0
                                       : middle == 0;
  if (!fits && (first || last) && pp == 1) {
    complaint = base::text(
        "model.num_layers_in_{}_pipeline_stage = {} with model.pipeline_model_parallel_size = 1: "
        "the one stage has all {} layers: leave it out, or use 2 or more pipeline ranks",
        first ? "first" : "last",
        first ? *first : *last,
        model.num_layers);
    return {};
  }
  if (!fits && (first || last)) {
    complaint = base::text(
        "model.num_layers = {}{}, less {} of the first and {} of the last stage, leaves {} layers "
        "for {} stages (pp = {}, {} of them with their own count; vpp = {}): use counts that leave "
        "a multiple, or say in model.pipeline_model_parallel_layout which stage holds what",
        model.num_layers,
        counted > 0 ? base::text(" + {} for embedding and loss", counted) : "",
        first.value_or(0),
        last.value_or(0),
        middle,
        middle_ranks * vpp,
        pp,
        pp - middle_ranks,
        vpp);
    return {};
  }
  if (!fits) {
    complaint = base::text(
        "model.num_layers = {}{} does not divide into {} equal stages (pp * vpp = {}*{}): use a "
        "multiple, or say in model.pipeline_model_parallel_layout which stage holds what",
        model.num_layers,
        counted > 0 ? base::text(" + {} for embedding and loss", counted) : "",
        middle_ranks * vpp,
        pp,
        vpp);
    return {};
  }
  const std::int64_t each = middle_ranks > 0 ? middle / middle_ranks : 0;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(pp), each);
  if (first) layers.front() = *first;
  if (last) layers.back() = *last;
  return layers;
}

// Spreads a rank's layers evenly over its chunks. If accounted for, the embedding takes a place in
// the first stage, and the loss one in the last.
Stages even_stages(const ModelConfig& model) {
  std::string complaint;
  const std::vector<std::int64_t> ranks = layers_of_ranks(model, complaint);
  if (ranks.empty()) return refused(complaint);
  const std::int64_t pp = model.pipeline_model_parallel_size, vpp = virtual_stages(model);
  Stages result;
  std::int64_t first_layer = 0;
  for (std::int64_t stage = 0; stage < pp * vpp; ++stage) {
    const bool embedding = stage == 0, loss = stage + 1 == pp * vpp;
    std::int64_t layers = ranks[static_cast<std::size_t>(stage % pp)] / vpp;
    if (embedding && model.account_for_embedding_in_pipeline_split) --layers;
    if (loss && model.account_for_loss_in_pipeline_split) --layers;
    if (layers < 0) return refused("a pipeline stage has no place for the embedding or the loss");
    result.all.push_back(
        {.first_layer = static_cast<int>(first_layer),
         .layers = static_cast<int>(layers),
         .mtp_layers = loss ? static_cast<int>(model.mtp_num_layers.value_or(0)) : 0,
         .embedding = embedding,
         .loss = loss});
    first_layer += layers;
  }
  return result;
}

}  // namespace

Stages stages_of(const ModelConfig& model) {
  return model.pipeline_model_parallel_layout.empty() ? even_stages(model) : from_layout(model);
}

std::optional<std::int64_t> stages_in_layout(const ModelConfig& model) {
  const std::optional<std::string> symbols =
      LayoutReader(model.pipeline_model_parallel_layout).read();
  if (!symbols) return std::nullopt;
  return count_of(*symbols, '|') + 1;
}

int Pipeline::rank_of(int stage) const {
  const int rank = stage % pp;
  return placement == Placement::V && stage >= pp ? pp - 1 - rank : rank;
}

std::vector<int> Pipeline::stages_of(int rank) const {
  std::vector<int> own;
  own.reserve(static_cast<std::size_t>(vpp));
  for (int chunk = 0; chunk < vpp; ++chunk) {
    const bool goes_up = placement == Placement::V && chunk > 0;
    own.push_back(chunk * pp + (goes_up ? pp - 1 - rank : rank));
  }
  return own;
}

Pipeline pipeline_of(const ModelConfig& model, Placement placement) {
  return {.pp = static_cast<int>(model.pipeline_model_parallel_size),
          .vpp = static_cast<int>(virtual_stages(model)),
          .placement = placement};
}

Pipeline pipeline_of(const Config& config) {
  return pipeline_of(config.model, placement_of(config));
}

Placement placement_of(const Config& config) {
  return pipeline_schedule(config) == PipelineSchedule::DualPipeV ? Placement::V : Placement::Ring;
}

PipelineSchedule pipeline_schedule(const Config& config) {
  if (config.runtime.pipeline_schedule != PipelineSchedule::Auto) {
    return config.runtime.pipeline_schedule;
  }
  return virtual_stages(config.model) > 1 ? PipelineSchedule::Interleaved
                                          : PipelineSchedule::OneForwardOneBackward;
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
  return pipeline_schedule(config) != PipelineSchedule::OneForwardOneBackward;
}

}  // namespace weft::derive
