#include "weft/data/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::data {
namespace {

using base::text;

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::size_t kMostDimensions = 32;

[[noreturn]] void reject_array(const std::string& name, const std::string& what) {
  throw base::ConfigError(text("'{}' is not an array of token ids: {}", name, what));
}

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::uint64_t>> shape;
};

// Parses {'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), } as Python writes it.
class HeaderParser {
 public:
  HeaderParser(std::string_view header, const std::string& name) : rest_(header), name_(name) {}

  Header parse() {
    expect('{');
    while (!take('}')) {
      member();
      if (!take(',') && !starts_with('}')) fail("a comma or its end");
    }
    skip_spaces();
    if (!rest_.empty()) fail("nothing more");
    return std::move(header_);
  }

 private:
  void member() {
    const std::string key = quoted();
    expect(':');
    if (key == "descr" && !header_.descr) {
      if (starts_with('[')) reject_array(name_, "its items are records; integers are needed");
      header_.descr = quoted();
    } else if (key == "fortran_order" && !header_.fortran_order) {
      header_.fortran_order = truth();
    } else if (key == "shape" && !header_.shape) {
      header_.shape = tuple();
    } else {
      reject_array(name_, text("its header has '{}' twice or for no reason", base::shown(key)));
    }
  }

  void skip_spaces() {
    const std::size_t first = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }
  bool starts_with(char c) {
    skip_spaces();
    return rest_.starts_with(c);
  }
  bool take(char c) {
    if (!starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(text("'{}'", c));
  }
  [[noreturn]] void fail(const std::string& expected) const {
    reject_array(name_,
                 text("its header has '{}' where {} is expected",
                      base::shown(rest_.substr(0, 20)),
                      expected));
  }

  std::string quoted() {
    const char mark = starts_with('"') ? '"' : '\'';
    expect(mark);
    const std::size_t end = rest_.find(mark);
    if (end == std::string_view::npos) fail("a closing quote");
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return word;
  }
  bool truth() {
    skip_spaces();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    fail("True or False");
  }
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> numbers;
    expect('(');
    while (!take(')')) {
      if (numbers.size() == kMostDimensions) fail("the end of the shape");
      skip_spaces();
      std::uint64_t number = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
      if (error != std::errc()) fail("a size");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      numbers.push_back(number);
      if (!take(',') && !starts_with(')')) fail("a comma or the end of the shape");
    }
    return numbers;
  }

  std::string_view rest_;
  const std::string& name_;
  Header header_;
};

struct Span {
  std::uint64_t begin, size;
};

// Position of the header text.
Span find_header(std::span<const std::byte> head, const std::string& name) {
  if (head.size() < 10 || std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    reject_array(name,
                 text("it does not begin as a .npy file does (it has {} bytes)", head.size()));
  }
  const auto version = std::to_integer<unsigned>(head[6]);
  if (version == 1) {
    std::uint16_t size = 0;
    std::memcpy(&size, head.data() + 8, sizeof size);
    return {10, size};
  }
  if (version != 2 && version != 3) {
    reject_array(name, text("its format is version {}; 1 to 3 are read", version));
  }
  std::uint32_t size = 0;
  if (head.size() < 12) reject_array(name, "it ends inside its header");
  std::memcpy(&size, head.data() + 8, sizeof size);
  return {12, size};
}

IntegerType type_of(const std::string& descr, const std::string& name) {
  if (descr.starts_with('>')) {
    reject_array(
        name,
        text("its integers are big-endian ('{}'): save array.astype('<i4')", base::shown(descr)));
  }
  const bool kind = descr.size() == 3 && (descr[1] == 'i' || descr[1] == 'u');
  if (kind && (descr[0] == '<' || descr[0] == '|')) {
    const std::string word = text("{}{}", descr[1], (descr[2] - '0') * 8);
    if (const auto type = integer_type_of(word)) return *type;
  }
  reject_array(
      name,
      text("its type is '{}'; integers are needed: save array.astype('<i4')", base::shown(descr)));
}

NpyArray array_of(const Header& header, const std::string& name) {
  if (!header.descr || !header.fortran_order || !header.shape) {
    reject_array(name, "its header has not all of descr, fortran_order and shape");
  }
  const std::vector<std::uint64_t>& shape = *header.shape;
  if (shape.empty() || shape.size() > 2) {
    reject_array(name,
                 text("it has {}; one or two are read, two as a document a row",
                      base::counted(std::ssize(shape), "dimension")));
  }
  if (shape.size() == 2 && *header.fortran_order) {
    reject_array(name, "its columns lie one after the other: save numpy.ascontiguousarray(array)");
  }
  NpyArray array;
  array.type = type_of(*header.descr, name);
  array.dimensions = static_cast<int>(shape.size());
  array.rows = shape.size() == 2 ? shape[0] : 1;
  array.columns = shape.back();
  return array;
}

void check_size(const NpyArray& array, std::uint64_t data_bytes, const std::string& name) {
  const std::uint64_t places = data_bytes / bytes_of(array.type);
  const bool none = array.rows == 0 || array.columns == 0;
  const bool fits = none || (array.columns <= places && array.rows <= places / array.columns);
  if (fits && (none ? 0 : array.rows * array.columns * bytes_of(array.type)) == data_bytes) return;
  reject_array(name,
               text("its header claims {} x {} {}, and {} bytes follow it",
                    array.rows,
                    array.columns,
                    word(array.type),
                    data_bytes));
}

}  // namespace

NpyArray parse_npy(std::span<const std::byte> head,
                   std::uint64_t file_bytes,
                   const std::string& name) {
  const Span header = find_header(head, name);
  if (header.size > head.size() - header.begin) {
    reject_array(name,
                 text("its header claims {} bytes; {} are there to be read",
                      header.size,
                      head.size() - header.begin));
  }
  const std::string_view all(reinterpret_cast<const char*>(head.data()), head.size());
  NpyArray array =
      array_of(HeaderParser(all.substr(header.begin, header.size), name).parse(), name);
  array.begin = header.begin + header.size;
  check_size(array, file_bytes - array.begin, name);
  return array;
}

}  // namespace weft::data
