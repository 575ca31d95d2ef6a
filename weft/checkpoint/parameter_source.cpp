#include "weft/checkpoint/parameter_source.h"

#include <algorithm>
#include <set>

#include "weft/base/check.h"

namespace weft::checkpoint {
namespace {

using base::text;

constexpr std::size_t kMostComplaints = 20;

// Accepted names of the model's tensors. Mixtral's experts are also accepted in the other families'
// spelling.
std::map<std::string, HuggingFaceTensor> candidates(const HuggingFaceConfig& config) {
  std::map<std::string, HuggingFaceTensor> all;
  const auto add = [&](Family family, ExpertNames experts) {
    for (HuggingFaceTensor& row : huggingface_tensors(config.model, family, experts)) {
      std::string name = row.name;
      all.emplace(std::move(name), std::move(row));
    }
  };
  add(config.family, ExpertNames::Separate);
  add(config.family, ExpertNames::Stacked);
  if (config.family == Family::Mixtral) add(Family::Qwen3Moe, ExpertNames::Separate);
  return all;
}

bool is_harmless(std::string_view name, const config::ModelConfig& model) {
  return name.ends_with(".rotary_emb.inv_freq") ||
         (name == "lm_head.weight" && model.share_embeddings_and_output_weights);
}

// True for tensors of multi-token prediction layers after the last layer, such as
// "model.layers.61." with 61 layers. Such a layer joins two streams; any other extra layer is an
// error.
bool is_ahead(std::string_view name, const HuggingFaceConfig& config, const TensorSource& source) {
  for (std::int64_t i = 0; i < config.layers_ahead; ++i) {
    const std::string layer = text("model.layers.{}.", config.model.num_layers + i);
    if (!name.starts_with(layer)) continue;
    return std::ranges::find(source.tensor_names, source.prefix + layer + "eh_proj.weight") !=
           source.tensor_names.end();
  }
  return false;
}

}  // namespace

ParameterSource::ParameterSource(const HuggingFaceConfig& config, const TensorSource& source)
    : parameters_(checkpoint::parameters(config.model)) {
  std::vector<std::string> complaints = take_tensors(config, source);
  if (complaints.empty()) complain_about_cover(config, source, complaints);
  if (complaints.size() > kMostComplaints) {
    const std::size_t more = complaints.size() - kMostComplaints;
    complaints.resize(kMostComplaints);
    complaints.push_back(text("'{}': and {} more", source.name, more));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

std::vector<std::string> ParameterSource::take_tensors(const HuggingFaceConfig& config,
                                                       const TensorSource& source) {
  const std::map<std::string, HuggingFaceTensor> known = candidates(config);
  std::vector<std::string> complaints;
  for (const std::string& full_name : source.tensor_names) {
    if (!full_name.starts_with(source.prefix)) continue;
    const std::string name = full_name.substr(source.prefix.size());
    const auto row = known.find(name);
    if (row == known.end()) {
      if (is_harmless(name, config.model)) continue;
      if (is_ahead(name, config, source)) {
        ++left_out_;
        continue;
      }
      complaints.push_back(
          text("'{}': tensor '{}' is not part of this {} model; config.json and weights disagree",
               source.name,
               base::shown(full_name),
               word(config.family)));
      continue;
    }
    std::optional<TensorView> tensor = source.find(full_name);
    CHECK(tensor.has_value(), "tensor '{}' listed but not found", full_name);
    if (tensor->shape != row->second.shape) {
      complaints.push_back(text("{} has shape {}; {} expected from config.json",
                                tensor->where,
                                tensor->shape,
                                row->second.shape));
    } else if (!is_floating(tensor->dtype)) {
      complaints.push_back(text("{} has dtype {}; F32, F64, BF16 or F16 expected",
                                tensor->where,
                                word(tensor->dtype)));
    }
    pieces_[row->second.parameter].push_back({.begin = row->second.begin,
                                              .end = row->second.begin + row->second.elements(),
                                              .tensor = *std::move(tensor),
                                              .trained = row->second.trained});
  }
  return complaints;
}

void ParameterSource::complain_about_cover(const HuggingFaceConfig& config,
                                           const TensorSource& source,
                                           std::vector<std::string>& complaints) {
  for (auto& [parameter, pieces] : pieces_) {
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return a.begin < b.begin;
    });
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      if (pieces[i].begin >= pieces[i - 1].end) continue;
      complaints.push_back(text("{} and {} hold the same weights; keep one of them",
                                pieces[i - 1].tensor.where,
                                pieces[i].tensor.where));
    }
  }
  if (!complaints.empty()) return;
  for (const HuggingFaceTensor& row :
       huggingface_tensors(config.model, config.family, ExpertNames::Separate)) {
    if (covers(row) || (source.holds == Holds::Trained && !row.trained)) continue;
    complaints.push_back(text("'{}': tensor '{}{}' of shape {} is missing",
                              source.name,
                              source.prefix,
                              row.name,
                              row.shape));
  }
}

std::vector<ParameterSource::Piece>::const_iterator ParameterSource::piece_at(
    const std::vector<Piece>& pieces,
    std::int64_t element) {
  return std::upper_bound(
      pieces.begin(),
      pieces.end(),
      element,
      [](std::int64_t at, const Piece& candidate) { return at < candidate.end; });
}

bool ParameterSource::covers(const HuggingFaceTensor& row) const {
  const auto found = pieces_.find(row.parameter);
  if (found == pieces_.end()) return false;
  const auto piece = piece_at(found->second, row.begin);
  return piece != found->second.end() && piece->begin <= row.begin &&
         row.begin + row.elements() <= piece->end;
}

bool ParameterSource::holds_only(FileDtype dtype) const {
  return std::ranges::all_of(pieces_, [&](const auto& of) {
    return std::ranges::all_of(of.second, [&](const Piece& piece) {
      return !piece.trained || piece.tensor.dtype == dtype;
    });
  });
}

void ParameterSource::read(std::string_view parameter,
                           std::int64_t begin,
                           std::span<float> out) const {
  const auto found = pieces_.find(parameter);
  CHECK(found != pieces_.end(), "no parameter '{}'", parameter);
  const std::vector<Piece>& pieces = found->second;
  CHECK(begin >= 0 && begin <= pieces.back().end &&
            out.size() <= static_cast<std::uint64_t>(pieces.back().end - begin),
        "{}: elements [{}, +{}) of {}",
        parameter,
        begin,
        out.size(),
        pieces.back().end);
  auto piece = piece_at(pieces, begin);
  while (!out.empty()) {
    const auto count = std::min(out.size(), static_cast<std::size_t>(piece->end - begin));
    read_elements(piece->tensor, begin - piece->begin, out.first(count));
    begin = piece->end;
    out = out.subspan(count);
    ++piece;
  }
}

}  // namespace weft::checkpoint
