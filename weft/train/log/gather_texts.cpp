#include "weft/train/log/gather_texts.h"

#include <algorithm>
#include <cstring>

#include "weft/tensor/transfer.h"

namespace weft::train {

std::vector<std::string> gather_texts(Engine& engine, const std::string& text) {
  using tensor::DType;
  using tensor::Tag;
  using tensor::Tensor;
  constexpr std::int64_t kBytes = 4096;  // sent as int64 words
  comm::Communicator& world = *engine.groups().world;
  Tensor own(engine.pool(), DType::I64, {kBytes / 8}, Tag::Communication);
  Tensor all(engine.pool(), DType::I64, {world.size() * kBytes / 8}, Tag::Communication);
  std::vector<std::int64_t> words(kBytes / 8, 0);
  std::memcpy(words.data(), text.data(), std::min<std::size_t>(text.size(), kBytes - 1));
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  tensor::upload<std::int64_t>(stream, own, words);
  world.all_gather(stream, all, own);
  const std::vector<std::int64_t> received = tensor::read<std::int64_t>(stream, all);
  std::vector<std::string> texts;
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto* at = reinterpret_cast<const char*>(received.data()) + rank * kBytes;
    texts.emplace_back(at, ::strnlen(at, kBytes));
  }
  return texts;
}

}  // namespace weft::train
