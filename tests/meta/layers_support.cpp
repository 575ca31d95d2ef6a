#include "tests/meta/layers_support.h"

#include <algorithm>
#include <array>
#include <regex>

#include "weft/base/text.h"

namespace weft::meta {
namespace {

using base::text;

constexpr std::array<std::string_view, 9>
    kBackends{"cpu", "cuda", "fake", "loopback", "mpi", "nccl", "onednn", "protobuf", "threads"};

// Folder in which a vendor's headers may be included.
struct Vendor {
  std::string_view header;  // beginning of the include
  std::string_view folder;
};
constexpr std::array kVendors{Vendor{"mpi.h", "weft/comm/mpi/"},
                              Vendor{"cudnn", "weft/kernels/cuda/"},
                              Vendor{"nccl.h", "weft/comm/nccl/"},
                              Vendor{"cblas.h", "weft/kernels/cpu/"},
                              Vendor{"openblas", "weft/kernels/cpu/"},
                              Vendor{"dnnl", "weft/kernels/cpu/onednn/"},
                              Vendor{"oneapi/", "weft/kernels/cpu/onednn/"},
                              Vendor{"omp.h", "weft/kernels/cpu/onednn/"},
                              Vendor{"google/protobuf/", "weft/events/protobuf/"},
                              Vendor{"yaml-cpp/", "weft/words/"},
                              Vendor{"zlib.h", "weft/trace/"},
                              Vendor{"CLI/", "weft/cli/"}};

struct Line {
  std::string module;
  std::vector<std::string> uses;
};

std::vector<Line> lines_of_layers(std::string_view all) {
  std::vector<Line> result;
  for (const std::string& line : lines_of(all)) {
    const std::size_t colon = line.find(':');
    if (line.starts_with('#') || colon == std::string::npos) continue;
    result.push_back({.module = line.substr(0, colon), .uses = words_of(line.substr(colon + 1))});
  }
  return result;
}

// Innermost backend folder of a path, up to its '/'. Empty: none.
std::string backend_of(std::string_view path) {
  for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::size_t before = path.rfind('/', slash - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view folder = path.substr(begin, slash - begin);
    if (std::ranges::find(kBackends, folder) != kBackends.end()) {
      return std::string(path.substr(0, slash + 1));
    }
  }
  return {};
}

// "cpu/" of "weft/kernels/cpu/".
std::string last_folder(const std::string& path) {
  const std::size_t slash = path.size() < 2 ? std::string::npos : path.rfind('/', path.size() - 2);
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Complaints own_include_complaints(const Layers& layers,
                                  const TextFile& file,
                                  const std::string& header) {
  if (!header.starts_with("weft/")) {
    return {text("{} includes \"{}\": begin at the root, as in \"weft/base/text.h\"",
                 file.path,
                 header)};
  }
  const std::string from = module_of(layers, file.path.substr(5));
  const std::string to = module_of(layers, header.substr(5));
  if (to.empty()) return {text("{} includes \"{}\", of no module", file.path, header)};
  if (from != to && !layers.at(from).contains(to)) {
    return {text("{} includes \"{}\": {} may not include {}", file.path, header, from, to)};
  }
  // A device has a folder of that name in several modules, which may include each other. NCCL uses
  // CUDA's streams.
  const std::string backend = backend_of(header), own = backend_of(file.path);
  const std::string device = last_folder(own) == "nccl/" ? "cuda/" : last_folder(own);
  const bool same = !own.empty() && device == last_folder(backend);
  if (!backend.empty() && !file.path.starts_with(backend) && !same) {
    return {text("{} includes \"{}\", which is inside a backend", file.path, header)};
  }
  return {};
}

Complaints vendor_complaints(const TextFile& file, const std::string& header) {
  for (const Vendor& vendor : kVendors) {
    if (header.starts_with(vendor.header) && !file.path.starts_with(vendor.folder)) {
      return {text("{} includes <{}>, which belongs in {}", file.path, header, vendor.folder)};
    }
  }
  return {};
}

}  // namespace

Layers parse_layers(std::string_view all) {
  Layers layers;
  for (Line& line : lines_of_layers(all)) {
    layers[line.module].insert(line.uses.begin(), line.uses.end());
  }
  return layers;
}

Complaints order_complaints(std::string_view layers_text) {
  Complaints complaints;
  std::set<std::string> earlier;
  for (const Line& line : lines_of_layers(layers_text)) {
    for (const std::string& use : line.uses) {
      if (!earlier.contains(use)) {
        complaints.push_back(text("{} uses {}, which no earlier line has", line.module, use));
      }
    }
    if (!earlier.insert(line.module).second) {
      complaints.push_back(text("{} has two lines", line.module));
    }
  }
  return complaints;
}

std::string module_of(const Layers& layers, std::string_view path) {
  for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string_view folder = path.substr(0, slash);
    if (layers.contains(folder)) return std::string(folder);
  }
  return {};
}

Complaints include_complaints(const Layers& layers, const TextFile& file) {
  if (module_of(layers, file.path.substr(5)).empty()) {
    return {text("{} belongs to no module of weft/layers.txt", file.path)};
  }
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  Complaints complaints;
  for (const std::string& line : lines_of(file.text)) {
    std::smatch found;
    if (!std::regex_search(line, found, include)) continue;
    append(complaints,
           found[1] == "\"" ? own_include_complaints(layers, file, found[2])
                            : vendor_complaints(file, found[2]));
  }
  return complaints;
}

}  // namespace weft::meta
