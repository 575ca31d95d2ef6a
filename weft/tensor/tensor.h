// Tensor: a shared handle on pool memory, with a shape. Rows may be strided (a block of columns).
//
// data<T>(stream) gives the address to work that is about to be enqueued. It is a device address
// that the host must not dereference. Only a host-visible tensor has host<T>(), after waiting for
// its writers; other tensors use tensor/transfer.h. Dropping the last handle returns the memory to
// the pool, at that point of the issue order. The work may still be in flight.
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
  // For the few numbers that the host reads or writes; operations take it like any tensor.
  static Tensor host_visible(Pool& pool, DType dtype, Shape shape, Tag tag);

  bool defined() const { return block_ != nullptr; }
  void reset() { *this = Tensor(); }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t dim(int i) const { return shape_[i]; }
  std::int64_t elements() const { return shape_.elements(); }
  std::int64_t bytes() const { return elements() * size_of(dtype_); }
  // Elements from one row (index of dim 0) to the next.
  std::int64_t row_stride() const { return row_stride_; }
  bool contiguous() const;

  // Views share memory. All but columns() need a contiguous tensor, unless a comment says
  // otherwise.
  Tensor view(Shape shape) const;                                // same elements, other shape
  Tensor rows(std::int64_t begin, std::int64_t count) const;     // indices of dim 0
  Tensor columns(std::int64_t begin, std::int64_t count) const;  // matrix only; strided
  Tensor range(std::int64_t begin, Shape shape) const;           // elements from begin on
  // bf16 view of an fp32 tensor, strided or not: each row lies in the first half of its fp32 row.
  Tensor front_halves() const;

  bool shares_block(const Tensor& other) const { return block_ == other.block_; }
  // True if each row begins at the same byte of the block as the other's row.
  bool rows_begin_as(const Tensor& other) const;

  template <typename T>
  T* data(Stream& stream) const {
    return reinterpret_cast<T*>(on_stream(stream, DTypeOf<std::remove_const_t<T>>::value));
  }
  // Bytes of any dtype: `raw` of contiguous tensors only, `first_byte` of strided rows too.
  std::byte* raw(Stream& stream) const;
  std::byte* first_byte(Stream& stream) const { return on_stream(stream, dtype_); }
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
