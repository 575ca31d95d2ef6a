#include "weft/data/jsonl_tokens.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::data {
namespace {

using base::text;

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kMostHeldIds = std::size_t{1} << 16;

class LineReader {
 public:
  LineReader(const base::InputFile& file, std::size_t longest) : file_(file), longest_(longest) {}

  // Next line, valid until the next call.
  std::optional<std::string_view> next() {
    for (std::size_t looked = begin_;;) {
      const std::size_t end = held_.find('\n', looked);
      if (end != std::string::npos) return line(end, end + 1);
      if (read_ == file_.size()) {
        if (begin_ == held_.size()) return std::nullopt;
        return line(held_.size(), held_.size());
      }
      held_.erase(0, begin_);
      begin_ = 0;
      looked = held_.size();
      if (looked > longest_) throw_long();
      read_more();
    }
  }
  std::uint64_t number() const { return number_; }  // number of the last line, from 1
  std::uint64_t bytes() const { return read_ - (held_.size() - begin_); }

 private:
  std::string_view line(std::size_t end, std::size_t next) {
    const std::string_view found = std::string_view(held_).substr(begin_, end - begin_);
    if (found.size() > longest_) throw_long();
    begin_ = next;
    ++number_;
    return found;
  }
  [[noreturn]] void throw_long() const {
    throw base::ConfigError(
        text("'{}', line {}: it has more than {} bytes: cut the document into several, or store it "
             "as .npy",
             file_.name(),
             number_ + 1,
             longest_));
  }
  void read_more() {
    const std::size_t held = held_.size();
    const auto count = std::min<std::uint64_t>(kChunkBytes, file_.size() - read_);
    held_.resize(held + count);
    file_.read(read_, std::as_writable_bytes(std::span(held_).subspan(held)));
    read_ += count;
  }

  const base::InputFile& file_;
  std::size_t longest_;
  std::string held_;
  std::size_t begin_ = 0;  // start of the unread part
  std::uint64_t read_ = 0, number_ = 0;
};

// SAX handler: takes the ids out of one line; other values of an object are skipped.
class LineTokens : public nlohmann::json_sax<nlohmann::json> {
 public:
  LineTokens(std::string where, const std::string& key, TokenSink& sink)
      : where_(std::move(where)), key_(key), sink_(sink) {}

  void end_line() {
    if (!found_) {
      fail(text("the object has no '{}'{}: name the list of ids with --key",
                base::shown(key_),
                others_.empty() ? "" : text(", but {}", fmt::join(others_, ", "))));
    }
    flush();
    sink_.end_document();
  }

  bool null() override { return other("null"); }
  bool boolean(bool /*value*/) override { return other("true or false"); }
  bool number_integer(std::int64_t value) override { return take(value); }
  bool number_unsigned(std::uint64_t value) override {
    constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
    return take(std::cmp_greater(value, kLargest) ? kLargest : static_cast<std::int64_t>(value));
  }
  bool number_float(double /*value*/, const std::string& written) override {
    return other(text("{}, which is no integer", base::shown(written)));
  }
  bool string(std::string& /*value*/) override { return other("a text"); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return other("binary"); }

  bool start_object(std::size_t /*elements*/) override {
    if (depth_ > 0) other("an object");
    ++depth_;
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ != 1) return true;
    wanted_ = name == key_;
    if (wanted_ && found_) fail(text("'{}' is there twice", base::shown(key_)));
    if (!wanted_ && others_.size() < kMostShown) others_.push_back(base::shown(name));
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    if (collecting_ > 0) other("a list");
    ++depth_;
    if (depth_ == 1 || (depth_ == 2 && wanted_)) {
      collecting_ = depth_;
      found_ = true;
    }
    return true;
  }
  bool end_array() override {
    if (depth_ == collecting_) collecting_ = 0;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t position,
                   const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    // The library counts its own lines, but this is one of many.
    std::string reason = base::reason_of(error);
    if (const std::size_t colon = reason.find(": "); colon != std::string::npos) {
      reason = reason.substr(colon + 2);
    }
    fail(text("no JSON at column {}: {}", position, reason));
  }

 private:
  static constexpr std::size_t kMostShown = 5;

  bool is_ids() const { return collecting_ > 0 || (depth_ == 1 && wanted_) || depth_ == 0; }
  bool take(std::int64_t id) {
    if (collecting_ == 0) return other("a number");
    ids_.push_back(id);
    if (ids_.size() == kMostHeldIds) flush();
    return true;
  }
  // Value other than an integer: an error where ids are expected.
  bool other(const std::string& what) {
    if (!is_ids()) return true;
    if (collecting_ > 0) fail(text("token {} is {}; ids are integers", given_ + ids_.size(), what));
    if (depth_ == 0) fail(text("it is {}; a list of ids, or an object with one, is needed", what));
    fail(text("'{}' is {}; a list of ids is needed", base::shown(key_), what));
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw base::ConfigError(text("{}: {}", where_, what));
  }
  void flush() {
    sink_.add(ids_, [&](std::size_t i) { return text("{}, token {}", where_, given_ + i); });
    given_ += ids_.size();
    ids_.clear();
  }

  std::string where_;
  const std::string& key_;
  TokenSink& sink_;
  int depth_ = 0, collecting_ = 0;  // collecting_: depth of the list of ids; 0: outside
  bool wanted_ = false, found_ = false;
  std::vector<std::string> others_;
  std::vector<std::int64_t> ids_;
  std::uint64_t given_ = 0;  // ids of the line already in the sink
};

// The parser would take a zero byte for the end of its input and drop the rest.
void refuse_zero_byte(std::string_view line, const std::string& where) {
  const std::size_t zero = line.find('\0');
  if (zero == std::string_view::npos) return;
  throw base::ConfigError(text("{}: no JSON at column {}: a zero byte", where, zero + 1));
}

}  // namespace

void read_jsonl(const base::InputFile& file,
                const std::string& key,
                TokenSink& sink,
                std::size_t longest_line) {
  LineReader lines(file, longest_line);
  while (const std::optional<std::string_view> line = lines.next()) {
    sink.reached(lines.bytes());
    if (line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = text("'{}', line {}", file.name(), lines.number());
    refuse_zero_byte(*line, where);
    LineTokens tokens(where, key, sink);
    nlohmann::json::sax_parse(*line, &tokens);
    tokens.end_line();
  }
}

}  // namespace weft::data
