// A tensor: a shared handle on pool memory, with a shape. Rows may be strided (a block of columns).
//
// Memory is reached through data<T>(stream) by whoever is about to enqueue work that uses it. That
// is an address of the device: the host does not follow it. Only a host-visible tensor has
// host<T>() too, after waiting for the writers; for everything else there is tensor/transfer.h.
// Dropping the last handle returns the memory to the pool at that moment of the issue order, even
// though the work may still be to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "weft/base/shape.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/tag.h"

namespace weft::tensor {

using base::kMaxRank;
using base::Shape;

class Block;
class Pool;
class Stream;

class Tensor {
 public:
  Tensor() = default;
  Tensor(Pool& pool, DType dtype, Shape shape, Tag tag, Reuse reuse = Reuse::InOrder);
  // For the few numbers that the host writes or reads: operations take it as any other.
  static Tensor host_visible(Pool& pool, DType dtype, Shape shape, Tag tag);

  bool defined() const { return block_ != nullptr; }
  void reset() { *this = Tensor(); }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t dim(int i) const { return shape_[i]; }
  std::int64_t elements() const { return shape_.elements(); }
  std::int64_t bytes() const { return elements() * size_of(dtype_); }
  // Elements from the start of one row (index of dim 0) to the next.
  std::int64_t row_stride() const { return row_stride_; }
  bool contiguous() const;

  // Views share the memory. All but columns() need a contiguous tensor unless said otherwise.
  Tensor view(Shape shape) const;                                // the same elements, another shape
  Tensor rows(std::int64_t begin, std::int64_t count) const;     // of dim 0
  Tensor columns(std::int64_t begin, std::int64_t count) const;  // of a matrix; strided
  Tensor range(std::int64_t begin, Shape shape) const;           // elements from begin on
  // Of fp32, strided or not: bf16, each row in the first half of its row's bytes.
  Tensor front_halves() const;

  bool shares_block(const Tensor& other) const { return block_ == other.block_; }
  // Whether each row begins at the byte of the block at which the other's begins.
  bool rows_begin_as(const Tensor& other) const;

  template <typename T>
  T* data(Stream& stream) const {
    return reinterpret_cast<T*>(on_stream(stream, DTypeOf<std::remove_const_t<T>>::value));
  }
  // The bytes, whatever the dtype; contiguous tensors only.
  std::byte* raw(Stream& stream) const;
  // Host-visible tensors only (CHECKed).
  template <typename T>
  T* host() const {
    return reinterpret_cast<T*>(on_host(DTypeOf<std::remove_const_t<T>>::value));
  }

 private:
  Tensor(std::shared_ptr<Block> block, DType dtype, Shape shape);
  std::byte* on_stream(Stream& stream, DType wanted) const;
  std::byte* on_host(DType wanted) const;

  std::shared_ptr<Block> block_;
  DType dtype_ = DType::F32;
  Shape shape_;
  std::int64_t row_stride_ = 0;
  std::int64_t offset_bytes_ = 0;
};

}  // namespace weft::tensor
