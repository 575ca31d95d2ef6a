#include "weft/tensor/tensor.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/tensor/device.h"
#include "weft/tensor/pool.h"

namespace weft::tensor {
namespace {

std::size_t bytes_of(DType dtype, const Shape& shape) {
  return static_cast<std::size_t>(shape.elements() * size_of(dtype));
}

}  // namespace

Tensor::Tensor(std::shared_ptr<Block> block, DType dtype, Shape shape)
    : block_(std::move(block)),
      dtype_(dtype),
      shape_(shape),
      row_stride_(shape.rank() > 0 && shape[0] > 0 ? shape.elements() / shape[0] : 0) {}

Tensor::Tensor(Pool& pool, DType dtype, Shape shape, Tag tag, Reuse reuse)
    : Tensor(pool.allocate(bytes_of(dtype, shape), tag, Memory::Device, reuse), dtype, shape) {}

Tensor Tensor::host_visible(Pool& pool, DType dtype, Shape shape, Tag tag) {
  return {pool.allocate(bytes_of(dtype, shape), tag, Memory::HostVisible), dtype, shape};
}

bool Tensor::contiguous() const {
  return shape_.rank() == 0 || shape_[0] <= 1 || row_stride_ * shape_[0] == elements();
}

Tensor Tensor::view(Shape shape) const {
  CHECK(shape.elements() == elements(), "view {} of {}", shape.print(), shape_.print());
  return range(0, shape);
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t count) const {
  CHECK(shape_.rank() >= 1 && begin >= 0 && count >= 0 && begin + count <= shape_[0],
        "rows [{}, +{}) of {}",
        begin,
        count,
        shape_.print());
  std::array<std::int64_t, kMaxRank> dims{};
  std::copy(shape_.dims().begin(), shape_.dims().end(), dims.begin());
  dims[0] = count;
  Tensor part = *this;
  part.shape_ = Shape(std::span<const std::int64_t>(dims.data(), shape_.dims().size()));
  part.offset_bytes_ += begin * row_stride_ * size_of(dtype_);
  return part;
}

Tensor Tensor::columns(std::int64_t begin, std::int64_t count) const {
  CHECK(shape_.rank() == 2 && begin >= 0 && count >= 0 && begin + count <= shape_[1],
        "columns [{}, +{}) of {}",
        begin,
        count,
        shape_.print());
  Tensor part = *this;
  part.shape_ = Shape{shape_[0], count};
  part.offset_bytes_ += begin * size_of(dtype_);
  return part;
}

Tensor Tensor::range(std::int64_t begin, Shape shape) const {
  CHECK(contiguous(), "a range of a strided tensor {}", shape_.print());
  CHECK(begin >= 0 && begin + shape.elements() <= elements(),
        "elements [{}, +{}) of {}",
        begin,
        shape.elements(),
        shape_.print());
  Tensor part = *this;
  part.shape_ = shape;
  part.row_stride_ = shape.rank() > 0 && shape[0] > 0 ? shape.elements() / shape[0] : 0;
  part.offset_bytes_ += begin * size_of(dtype_);
  return part;
}

Tensor Tensor::front_halves() const {
  CHECK(dtype_ == DType::F32, "halves of {} rows", name_of(dtype_));
  Tensor part = *this;
  part.dtype_ = DType::BF16;
  part.row_stride_ = 2 * row_stride_;
  return part;
}

bool Tensor::rows_begin_as(const Tensor& other) const {
  return offset_bytes_ == other.offset_bytes_ &&
         row_stride_ * size_of(dtype_) == other.row_stride_ * size_of(other.dtype_);
}

std::byte* Tensor::on_stream(Stream& stream, DType wanted) const {
  CHECK(defined(), "an undefined tensor");
  CHECK(wanted == dtype_, "a {} tensor read as {}", name_of(dtype_), name_of(wanted));
  return block_->on(stream) + offset_bytes_;
}

std::byte* Tensor::on_host(DType wanted) const {
  CHECK(defined(), "an undefined tensor");
  CHECK(wanted == dtype_, "a {} tensor read as {}", name_of(dtype_), name_of(wanted));
  return block_->on_host() + offset_bytes_;
}

std::byte* Tensor::raw(Stream& stream) const {
  CHECK(contiguous(), "raw bytes of a strided tensor {}", shape_.print());
  return first_byte(stream);
}

}  // namespace weft::tensor
