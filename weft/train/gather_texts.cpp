#include "weft/train/gather_texts.h"

#include <algorithm>
#include <cstring>

namespace weft::train {

std::vector<std::string> gather_texts(Engine& engine, const std::string& text) {
  using tensor::DType;
  using tensor::Tag;
  using tensor::Tensor;
  constexpr std::int64_t kBytes = 4096;  // travels as int64 words
  comm::Communicator& world = *engine.groups().world;
  Tensor own(engine.pool(), DType::I64, {kBytes / 8}, Tag::Communication);
  Tensor all(engine.pool(), DType::I64, {world.size() * kBytes / 8}, Tag::Communication);
  std::memset(own.host_raw(), 0, kBytes);
  std::memcpy(own.host_raw(), text.data(), std::min<std::size_t>(text.size(), kBytes - 1));
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  world.all_gather(stream, all, own);
  stream.synchronize();
  std::vector<std::string> texts;
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto* at = reinterpret_cast<const char*>(all.host_raw()) + rank * kBytes;
    texts.emplace_back(at, ::strnlen(at, kBytes));
  }
  return texts;
}

}  // namespace weft::train
