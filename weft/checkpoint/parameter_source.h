// Parameters assembled from whichever Hugging Face tensors cover them: separate or stacked experts,
// in any mix. Any range of elements can be read, so that a rank touches only what it owns.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/file_tensor.h"
#include "weft/checkpoint/huggingface_tensors.h"

namespace weft::checkpoint {

// Where tensors come from: a folder of weights, or the gradients of a reference run.
enum class Holds { Everything, Trained };  // Trained: gradients, so nothing of what has none
struct TensorSource {
  std::string name;                       // for errors
  std::string prefix;                     // before every tensor's name: "" or "grad."
  std::vector<std::string> tensor_names;  // with the prefix
  std::function<std::optional<TensorView>(std::string_view)> find;
  Holds holds = Holds::Everything;
};

class ParameterSource {
 public:
  // ConfigError, with every complaint (up to a limit), where a tensor is missing, is given twice
  // under two spellings, has another shape or dtype, or belongs to no parameter. What a
  // TensorView refers to must outlive this.
  ParameterSource(const HuggingFaceConfig& config, const TensorSource& source);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Tensors of layers that predict further ahead.
  std::size_t left_out() const { return left_out_; }
  // Whether every tensor of what is trained is stored so.
  bool holds_only(FileDtype dtype) const;

  // Elements [begin, begin + out.size()) of a parameter of the model.
  void read(std::string_view parameter, std::int64_t begin, std::span<float> out) const;

 private:
  struct Piece {
    std::int64_t begin;  // in the parameter
    std::int64_t end;
    TensorView tensor;
    bool trained;
  };
  using Pieces = std::map<std::string, std::vector<Piece>, std::less<>>;

  // The piece that holds `element`, in sorted pieces that do not overlap.
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
