#include "text/tokenizer_json.hpp"

#include <cstdint>
#include <utility>

#include "base/error.hpp"

namespace thalweg::text {
namespace {

/// Receives the events of nlohmann's SAX parser. A document of the released file takes four times as long to
/// build and to free as the two lists take to read, and members of Json objects are searched one by one.
class Reader {
 public:
  Reader(TokenizerJson& out, const std::string& subject) : out_(out), subject_(subject) {}

  bool null() { return value(nullptr, "null"); }
  bool boolean(bool v) { return value(v, "a boolean"); }
  bool number_float(double v, const std::string&) { return value(v, "a number"); }
  bool number_integer(std::int64_t v) { return integer(v, v); }
  bool number_unsigned(std::uint64_t v) {
    return integer(v, v > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(v));
  }
  bool binary(Json::binary_t&) { return false; }  // JSON text has no such value

  bool string(std::string& v) {
    if (list_ == List::none) return value(std::move(v), {});
    if (list_ == List::vocabulary) wrong("an integer", "a string");
    if (in_pair_) {
      if (pair_size_ == 2) wrong("a pair of strings", "more than two");
      ++pair_size_;
      out_.merges.add(v);
    } else {
      add_joined_merge(v);
    }
    return true;
  }

  bool key(std::string& name) {
    if (list_ == List::vocabulary) {
      out_.vocabulary.add(name);
    } else {
      Json& object = *open_.back();
      if (object.contains(name)) throw InputError(subject_, fmt::format("member \"{}\" appears twice", name));
      member_ = name;
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (list_ != List::none) wrong(expected_value(), "an object");
    if (in_model_ && open_.size() == 2 && member_ == "vocab") {
      add(nullptr);
      list_ = List::vocabulary;
    } else {
      open(Json::object());
      if (open_.size() == 2) in_model_ = open_.front()->is_object() && member_ == "model";
    }
    return true;
  }

  bool end_object() { return close(List::vocabulary); }

  bool start_array(std::size_t) {
    if (list_ == List::merges && !in_pair_) {
      in_pair_ = true;
      pair_size_ = 0;
    } else if (list_ != List::none) {
      wrong(expected_value(), "an array");
    } else if (in_model_ && open_.size() == 2 && member_ == "merges") {
      add(nullptr);
      list_ = List::merges;
      out_.has_merges = true;
    } else {
      open(Json::array());
      if (open_.size() == 2) in_model_ = false;
    }
    return true;
  }

  bool end_array() {
    if (!in_pair_) return close(List::merges);
    if (pair_size_ != 2) wrong("a pair of strings", fmt::format("{}", pair_size_));
    in_pair_ = false;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) {
    // nlohmann prefixes "[json.exception.parse_error.101] "; the reader only needs what follows.
    std::string_view message = error.what();
    if (const auto end = message.find("] "); end != std::string_view::npos) message.remove_prefix(end + 2);
    throw InputError(subject_, fmt::format("not valid JSON: {}", message));
  }

 private:
  enum class List { none, vocabulary, merges };

  std::string_view expected_value() const {
    return list_ == List::vocabulary ? "an integer" : in_pair_ ? "a string" : "\"a b\" or [\"a\", \"b\"]";
  }

  [[noreturn]] void wrong(std::string_view expected, std::string_view found) const {
    const std::string place =
        list_ == List::vocabulary
            ? fmt::format("model.vocab[\"{}\"]", out_.vocabulary[out_.vocabulary.size() - 1])
            : fmt::format("model.merges[{}]", (out_.merges.size() - (in_pair_ ? pair_size_ : 0)) / 2);
    throw InputError(fmt::format("{}: {}", subject_, place), expected, found);
  }

  bool integer(Json v, std::int64_t id) {
    if (list_ != List::vocabulary) return value(std::move(v), "a number");
    out_.vocabulary_ids.push_back(id);
    return true;
  }

  bool value(Json v, std::string_view kind) {
    if (list_ != List::none) wrong(expected_value(), kind);
    add(std::move(v));
    return true;
  }

  void add_joined_merge(std::string_view merge) {
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos) {
      wrong("two spellings around one space", fmt::format("\"{}\"", merge));
    }
    out_.merges.add(merge.substr(0, space));
    out_.merges.add(merge.substr(space + 1));
  }

  /// Puts `v` where the document stands; returns its place.
  Json* add(Json v) {
    if (open_.empty()) {
      out_.rest = std::move(v);
      return &out_.rest;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    return &(parent[member_] = std::move(v));
  }

  void open(Json container) {
    if (open_.size() == 16) throw InputError(subject_, "nested deeper than 16 levels");
    open_.push_back(add(std::move(container)));
  }

  bool close(List list) {
    if (list_ == list) {
      list_ = List::none;
    } else {
      open_.pop_back();
    }
    return true;
  }

  TokenizerJson& out_;
  const std::string& subject_;
  std::vector<Json*> open_;  // containers around the current place; only the last one grows
  std::string member_;       // name of the member whose value comes next
  bool in_model_ = false;    // the member of the root that is open, or was last, is "model"
  List list_ = List::none;
  bool in_pair_ = false;
  std::size_t pair_size_ = 0;
};

}  // namespace

TokenizerJson read_tokenizer_json(std::string_view json, const std::string& subject) {
  TokenizerJson out;
  Reader reader(out, subject);
  // Pointers, not iterators: nlohmann reads them twice as fast.
  Json::sax_parse(json.data(), json.data() + json.size(), &reader);
  return out;
}

}  // namespace thalweg::text
