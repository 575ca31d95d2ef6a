#include "weft/train/saves/state_forms.h"

#include <algorithm>
#include <vector>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/checkpoint/shard.h"
#include "weft/model/parameters.h"
#include "weft/tensor/narrow_numbers.h"
#include "weft/tensor/transfer.h"
#include "weft/train/optimizers.h"

namespace weft::train {
namespace {

using base::text;
using checkpoint::FileDtype;
using checkpoint::StoredForms;
using checkpoint::StoredMasters;
using tensor::BFloat16;
using tensor::DType;
using tensor::Float16;

constexpr std::int64_t kMostAtOnce = 1 << 20;  // elements on the host

std::string_view moment_word(FileDtype dtype) {
  if (dtype == FileDtype::BF16) return "bf16";
  return dtype == FileDtype::F16 ? "fp16" : "fp32";
}

std::string_view masters_word(StoredMasters masters) {
  if (masters == StoredMasters::Halves) return "fp16";
  return masters == StoredMasters::Remainders ? "16-bit remainders" : "fp32";
}

using ReadFloats = void (*)(checkpoint::StateReader&,
                            const std::string&,
                            const tensor::Slice&,
                            std::span<float>);

// Reads the entry's elements in fp32 and uploads `encode` of each.
template <typename Encode>
void convert_entry(checkpoint::StateReader& reader,
                   tensor::Stream& stream,
                   const checkpoint::StateEntry& entry,
                   const std::string& parameter,
                   ReadFloats read,
                   const Encode& encode) {
  using Stored = decltype(encode(0.0f));
  const tensor::Tensor all = entry.tensor.view({entry.tensor.elements()});
  std::vector<float> values;
  std::vector<Stored> encoded;
  tensor::Slice piece = entry.slice;
  for (std::int64_t done = 0; done < entry.slice.elements.count; done += kMostAtOnce) {
    piece.elements = {.begin = entry.slice.elements.begin + done,
                      .count = std::min(kMostAtOnce, entry.slice.elements.count - done)};
    values.resize(static_cast<std::size_t>(piece.elements.count));
    read(reader, parameter, piece, values);
    encoded.resize(values.size());
    std::ranges::transform(values, encoded.begin(), encode);
    tensor::write<Stored>(stream, all.range(done, {piece.elements.count}), encoded);
  }
}

// `half` encodes a value as fp16.
template <typename Half>
void convert_moment(checkpoint::StateReader& reader,
                    tensor::Stream& stream,
                    const checkpoint::StateEntry& entry,
                    const std::string& parameter,
                    ReadFloats read,
                    const Half& half) {
  const auto convert = [&](const auto& encode) {
    convert_entry(reader, stream, entry, parameter, read, encode);
  };
  const DType dtype = entry.tensor.dtype();
  if (dtype == DType::F32) return convert([](float value) { return value; });
  if (dtype == DType::BF16) return convert([](float value) { return BFloat16(value); });
  if (dtype == DType::F16) return convert(half);
  UNREACHABLE("moments of {}", tensor::name_of(dtype));
}

// Converts a master weight, one of its halves, or the weight rounded from it.
void convert_master(checkpoint::StateReader& reader,
                    tensor::Stream& stream,
                    const checkpoint::StateEntry& entry,
                    const std::string& parameter,
                    StoredMasters now) {
  const auto convert = [&](const auto& encode) {
    convert_entry(reader, stream, entry, parameter, checkpoint::read_master, encode);
  };
  const DType dtype = entry.tensor.dtype();
  if (dtype == DType::F32) return convert([](float value) { return value; });
  if (dtype == DType::F16) return convert(tensor::half_of_master);
  if (dtype == DType::I16) {
    return convert([](float value) { return tensor::split_float(value).remainder; });
  }
  if (dtype == DType::BF16 && now == StoredMasters::Whole) {
    return convert([](float value) { return BFloat16(value); });
  }
  if (dtype == DType::BF16 && now == StoredMasters::Halves) {
    return convert([](float value) {
      return BFloat16(tensor::master_of_half(tensor::half_of_master(value)));
    });
  }
  if (dtype == DType::BF16) {
    return convert([](float value) {
      BFloat16 upper;
      upper.bits = tensor::split_float(value).upper;
      return upper;
    });
  }
  UNREACHABLE("master weights of {}", tensor::name_of(dtype));
}

}  // namespace

StoredForms forms_of(const config::Config& config) {
  const optim::StateDtypes dtypes = state_dtypes(config);
  StoredForms forms{.moment1 = checkpoint::file_dtype(dtypes.moment1),
                    .moment2 = checkpoint::file_dtype(dtypes.moment2)};
  if (model::dtype_of(config.model.params_dtype) == DType::F32) return forms;
  forms.masters = StoredMasters::Whole;
  if (dtypes.master == DType::I16) forms.masters = StoredMasters::Remainders;
  if (dtypes.master == DType::F16) forms.masters = StoredMasters::Halves;
  return forms;
}

std::string changed_forms(const StoredForms& then, const StoredForms& now) {
  std::vector<std::string> changes;
  const auto add = [&](const char* what, std::string_view before, std::string_view after) {
    if (before != after) changes.push_back(text("{} from {} to {}", what, before, after));
  };
  add("first moments", moment_word(then.moment1), moment_word(now.moment1));
  add("second moments", moment_word(then.moment2), moment_word(now.moment2));
  add("master weights", masters_word(then.masters), masters_word(now.masters));
  if (changes.empty()) return "";
  return text("the optimizer's state is converted as it is read: {}", fmt::join(changes, ", "));
}

FormReader::FormReader(checkpoint::StateReader& reader,
                       const checkpoint::Manifest& manifest,
                       const config::Config& config)
    : reader_(reader), then_(checkpoint::forms_in(manifest)), now_(forms_of(config)) {}

void FormReader::read(tensor::Stream& stream, const checkpoint::StateEntry& entry) {
  const std::size_t slash = entry.name.find('/');
  const std::string kind = entry.name.substr(0, slash), of = entry.name.substr(slash + 1);
  if (kind == "optimizer.moment1" && then_.moment1 != now_.moment1) {
    return convert_moment(reader_,
                          stream,
                          entry,
                          of,
                          checkpoint::read_moment1,
                          tensor::half_of_moment1);
  }
  if (kind == "optimizer.moment2" && then_.moment2 != now_.moment2) {
    return convert_moment(reader_,
                          stream,
                          entry,
                          of,
                          checkpoint::read_moment2,
                          tensor::half_of_moment2);
  }
  const bool has_master = kind == "optimizer.master" || kind == "optimizer.remainder" ||
                          (kind == "weights" && entry.tensor.dtype() == DType::BF16);
  if (has_master && then_.masters != now_.masters) {
    return convert_master(reader_, stream, entry, of, now_.masters);
  }
  reader_.read(stream, entry);
}

}  // namespace weft::train
