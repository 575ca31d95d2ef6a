#include "weft/checkpoint/manifest.h"

#include <iterator>

#include "weft/base/check.h"
#include "weft/base/crc32c.h"
#include "weft/base/json.h"
#include "weft/checkpoint/manifest_words.h"

namespace weft::checkpoint {
namespace {

using base::Json;

Json to_json(const tensor::Range& range) { return Json::array({range.begin, range.count}); }

Json to_json(const StoredSlice& stored) {
  Json dims = Json::array();
  for (const std::vector<tensor::Range>& ranges : stored.slice.dims) {
    Json all = Json::array();
    for (const tensor::Range& range : ranges) all.push_back(to_json(range));
    dims.push_back(std::move(all));
  }
  return {{"file", stored.file},
          {"at", stored.at},
          {"dims", std::move(dims)},
          {"elements", to_json(stored.slice.elements)},
          {"crc32c", stored.checksums}};
}

Json to_json(const StoredState& state) {
  Json slices = Json::array();
  for (const StoredSlice& slice : state.slices) slices.push_back(to_json(slice));
  const auto dims = state.shape.dims();
  return {{"dtype", word(state.dtype)},
          {"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
          {"slices", std::move(slices)}};
}

Json to_json(const StoredFile& file) {
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"header_bytes", file.header_bytes},
          {"header_crc32c", file.header_checksum}};
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  Json json{{"format", kManifestFormat},
            {"step", manifest.step},
            {"samples", manifest.samples},
            {"seed", manifest.seed},
            {"layout", manifest.layout},
            {"config", manifest.config},
            {"block_bytes", kBlockBytes}};
  if (manifest.follows) json["follows"] = *manifest.follows;
  json["files"] = Json::array();
  for (const StoredFile& file : manifest.files) json["files"].push_back(to_json(file));
  json["tensors"] = Json::object();
  for (const auto& [name, state] : manifest.states) json["tensors"][name] = to_json(state);
  std::string text = json.dump();
  text.pop_back();
  return base::text("{}{}{}}}\n", text, kChecksumKey, base::crc32c(text));
}

void add_part(Manifest& manifest, Manifest part) {
  const std::size_t before = manifest.files.size();
  std::ranges::move(part.files, std::back_inserter(manifest.files));
  for (auto& [name, state] : part.states) {
    for (StoredSlice& slice : state.slices) slice.file += before;
    const auto [at, is_new] = manifest.states.try_emplace(name, std::move(state));
    if (is_new) continue;
    CHECK(at->second.shape == state.shape && at->second.dtype == state.dtype,
          "ranks disagree on the shape of '{}'",
          name);
    std::ranges::move(state.slices, std::back_inserter(at->second.slices));
  }
}

std::string uncovered_state(const Manifest& manifest) {
  for (const auto& [name, state] : manifest.states) {
    std::int64_t left = state.shape.elements();
    for (const StoredSlice& slice : state.slices) left -= slice.slice.elements.count;
    if (left > 0) return name;
  }
  return "";
}

std::string layout_text(const Manifest& manifest) {
  const auto world = manifest.layout.find("world");
  std::string all = base::counted(world == manifest.layout.end() ? 1 : world->second, "rank");
  for (const auto& [axis, size] : manifest.layout) {
    if (axis == "world" || axis == "distributed_optimizer" || size <= 1) continue;
    all += base::text(", {} {}", base::shown(axis), size);
  }
  const auto shares = manifest.layout.find("distributed_optimizer");
  const bool is_shared = shares != manifest.layout.end() && shares->second == 1;
  return is_shared ? all + ", optimizer distributed" : all;
}

std::uint64_t bytes_of(const StoredSlice& slice, FileDtype dtype) {
  return static_cast<std::uint64_t>(slice.slice.elements.count) * element_bytes(dtype);
}

}  // namespace weft::checkpoint
