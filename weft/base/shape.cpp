#include "weft/base/shape.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::base {

Shape::Shape(std::initializer_list<std::int64_t> dims)
    : Shape(std::span<const std::int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  CHECK(dims.size() <= kMaxRank, "{} dims; at most {}", dims.size(), kMaxRank);
  for (const std::int64_t dim : dims) CHECK(dim >= 0, "a negative dim {}", dim);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims()) product *= dim;
  return product;
}

std::string Shape::print() const { return text("({})", fmt::join(dims(), ", ")); }

}  // namespace weft::base
