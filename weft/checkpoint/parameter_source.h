// Parameters assembled from Hugging Face tensors: separate or stacked experts in any mix. Any range
// of elements can be read, so a rank reads only its own part.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface_tensors.h"
#include "weft/checkpoint/tensors/file_tensor.h"

namespace weft::checkpoint {

// Source of tensors: a folder of weights, or the gradients of a reference run.
enum class Holds { Everything, Trained };  // Trained: gradients, so untrained tensors are absent
struct TensorSource {
  std::string name;                       // for errors
  std::string prefix;                     // before every tensor's name: "" or "grad."
  std::vector<std::string> tensor_names;  // with the prefix
  std::function<std::optional<TensorView>(std::string_view)> find;
  Holds holds = Holds::Everything;
};

class ParameterSource {
 public:
  // ConfigError with every complaint (up to a limit): a tensor is missing, given twice under two
  // spellings, unknown, or has another shape or dtype. Data behind a TensorView must outlive this
  // object.
  ParameterSource(const HuggingFaceConfig& config, const TensorSource& source);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Number of tensors in multi-token prediction layers.
  std::size_t left_out() const { return left_out_; }
  // True if every trained tensor has this dtype.
  bool holds_only(FileDtype dtype) const;

  // Reads the elements [begin, begin + out.size()) of a parameter.
  void read(std::string_view parameter, std::int64_t begin, std::span<float> out) const;

 private:
  struct Piece {
    std::int64_t begin;  // offset in the parameter
    std::int64_t end;
    TensorView tensor;
    bool trained;
  };
  using Pieces = std::map<std::string, std::vector<Piece>, std::less<>>;

  // Piece with `element`, in sorted disjoint pieces.
  static std::vector<Piece>::const_iterator piece_at(const std::vector<Piece>& pieces,
                                                     std::int64_t element);
  bool covers(const HuggingFaceTensor& row) const;
  std::vector<std::string> take_tensors(const HuggingFaceConfig& config,
                                        const TensorSource& source);
  void complain_about_cover(const HuggingFaceConfig& config,
                            const TensorSource& source,
                            std::vector<std::string>& complaints);

  std::vector<Parameter> parameters_;
  Pieces pieces_;
  std::size_t left_out_ = 0;
};

}  // namespace weft::checkpoint
