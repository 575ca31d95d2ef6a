#include "weft/checkpoint/optimizer_state.h"

#include <vector>

#include "weft/tensor/narrow_numbers.h"

namespace weft::checkpoint {
namespace {

constexpr const char* kMoment1 = "optimizer.moment1/";
constexpr const char* kMoment2 = "optimizer.moment2/";
constexpr const char* kMaster = "optimizer.master/";
constexpr const char* kRemainder = "optimizer.remainder/";

const StoredState* first_of(const Manifest& manifest, std::string_view kind) {
  const auto found = manifest.states.lower_bound(kind);
  const bool is_there = found != manifest.states.end() && found->first.starts_with(kind);
  return is_there ? &found->second : nullptr;
}

FileDtype dtype_of_kind(const Manifest& manifest, std::string_view kind) {
  const StoredState* first = first_of(manifest, kind);
  const bool is_form =
      first != nullptr && (first->dtype == FileDtype::BF16 || first->dtype == FileDtype::F16);
  return is_form ? first->dtype : FileDtype::F32;
}

template <typename T>
std::vector<T> read_as(StateReader& reader,
                       const std::string& name,
                       FileDtype dtype,
                       const tensor::Slice& slice) {
  std::vector<T> values(static_cast<std::size_t>(slice.elements.count));
  reader.read_bytes(name, dtype, slice, std::as_writable_bytes(std::span(values)));
  return values;
}

}  // namespace

StoredForms forms_in(const Manifest& manifest) {
  StoredForms forms{.moment1 = dtype_of_kind(manifest, kMoment1),
                    .moment2 = dtype_of_kind(manifest, kMoment2)};
  if (first_of(manifest, kRemainder) != nullptr) forms.masters = StoredMasters::Remainders;
  if (const StoredState* master = first_of(manifest, kMaster)) {
    forms.masters = master->dtype == FileDtype::F16 ? StoredMasters::Halves : StoredMasters::Whole;
  }
  return forms;
}

void read_moment1(StateReader& reader,
                  const std::string& parameter,
                  const tensor::Slice& slice,
                  std::span<float> out) {
  const std::string name = kMoment1 + parameter;
  reader.read(name, slice, out);
  if (reader.dtype_of(name) != FileDtype::F16) return;
  for (float& value : out) value = tensor::moment1_of_half(tensor::Float16(value));
}

void read_moment2(StateReader& reader,
                  const std::string& parameter,
                  const tensor::Slice& slice,
                  std::span<float> out) {
  const std::string name = kMoment2 + parameter;
  reader.read(name, slice, out);
  if (reader.dtype_of(name) != FileDtype::F16) return;
  for (float& value : out) value = tensor::moment2_of_half(tensor::Float16(value));
}

void read_master(StateReader& reader,
                 const std::string& parameter,
                 const tensor::Slice& slice,
                 std::span<float> out) {
  const std::string remainder = kRemainder + parameter, master = kMaster + parameter;
  if (!reader.dtype_of(remainder)) {
    reader.read(master, slice, out);
    if (reader.dtype_of(master) != FileDtype::F16) return;
    for (float& value : out) value = tensor::master_of_half(tensor::Float16(value));
    return;
  }
  const auto uppers =
      read_as<std::uint16_t>(reader, "weights/" + parameter, FileDtype::BF16, slice);
  const auto remainders = read_as<std::int16_t>(reader, remainder, FileDtype::I16, slice);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = tensor::joined_float(uppers[i], remainders[i]);
  }
}

}  // namespace weft::checkpoint
