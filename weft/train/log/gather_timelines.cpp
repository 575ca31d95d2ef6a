#include "weft/train/log/gather_timelines.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "weft/tensor/transfer.h"
#include "weft/trace/timeline_text.h"
#include "weft/train/log/gather_texts.h"

namespace weft::train {
namespace {

using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

// Name of the clock of spans: processes on one running kernel share it. Empty: unknown.
std::string clock_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  std::getline(file, name);
  return name;
}

trace::Clocks compare_clocks(Engine& engine) {
  const std::vector<std::string> names = gather_texts(engine, clock_name());
  const bool same = !names.front().empty() && std::ranges::count(names, names.front()) ==
                                                  static_cast<std::ptrdiff_t>(names.size());
  return same ? trace::Clocks::Shared : trace::Clocks::Separate;
}

// Number of int64 words of a text, padded with zeros.
std::int64_t words_for(std::size_t bytes) { return static_cast<std::int64_t>((bytes + 7) / 8); }

std::vector<std::int64_t> gather_sizes(Engine& engine, std::int64_t own) {
  comm::Communicator& world = *engine.groups().world;
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  Tensor mine(engine.pool(), DType::I64, {1}, Tag::Communication);
  Tensor all(engine.pool(), DType::I64, {world.size()}, Tag::Communication);
  tensor::upload<std::int64_t>(stream, mine, {&own, 1});
  world.all_gather(stream, all, mine);
  return tensor::read<std::int64_t>(stream, all);
}

// Every rank's text, on rank 0 only.
std::vector<std::string> send_to_first(Engine& engine, const std::string& text) {
  comm::Communicator& world = *engine.groups().world;
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  const std::int64_t own = words_for(text.size());
  const std::vector<std::int64_t> sizes = gather_sizes(engine, own);
  const bool is_first = world.rank() == 0;
  std::vector<std::int64_t> out(sizes.size(), 0);
  out.front() = own;
  const std::vector<std::int64_t> in =
      is_first ? sizes : std::vector<std::int64_t>(sizes.size(), 0);
  std::int64_t total = 0;
  for (const std::int64_t words : in) total += words;
  Tensor send(engine.pool(), DType::I64, {own}, Tag::Communication);
  Tensor receive(engine.pool(), DType::I64, {std::max<std::int64_t>(1, total)}, Tag::Communication);
  std::vector<std::int64_t> letters(static_cast<std::size_t>(own), 0);
  std::memcpy(letters.data(), text.data(), text.size());
  tensor::upload<std::int64_t>(stream, send, letters);
  world.all_to_all(stream, receive, send, in, out);
  const std::vector<std::int64_t> received = tensor::read<std::int64_t>(stream, receive);
  std::vector<std::string> texts;
  if (!is_first) return texts;
  const char* at = reinterpret_cast<const char*>(received.data());
  for (const std::int64_t words : in) {
    const auto room = static_cast<std::size_t>(words) * 8;
    texts.emplace_back(at, ::strnlen(at, room));
    at += room;
  }
  return texts;
}

}  // namespace

GatheredTimelines gather_timelines(Engine& engine, const trace::Timeline& own) {
  GatheredTimelines gathered{.timelines = {}, .clocks = compare_clocks(engine)};
  for (const std::string& text : send_to_first(engine, trace::to_text(own))) {
    gathered.timelines.push_back(trace::parse_timeline(text));
  }
  return gathered;
}

}  // namespace weft::train
