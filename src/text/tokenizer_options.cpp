#include "text/tokenizer_options.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "text/pretokenizer.hpp"
#include "text/utf8.hpp"

namespace thalweg::text {
namespace {

const Json absent;  // a member that is not there counts as null, as in the library that writes these files

/// A value of the document together with the way to it.
class Field {
 public:
  Field(const std::string& subject, std::string path, const Json& value)
      : subject_(subject), path_(std::move(path)), value_(value) {}

  Field member(const std::string& name) const {
    const auto found = value_.find(name);
    return {subject_, path_.empty() ? name : path_ + "." + name, found == value_.end() ? absent : *found};
  }

  Field item(std::size_t i) const { return {subject_, fmt::format("{}[{}]", path_, i), value_[i]}; }

  [[noreturn]] void refuse(const std::string& expected) const {
    refuse_value(subject_, path_, expected, value_);
  }

  /// The value must be one of these.
  void expect(const std::vector<Json>& choices) const {
    if (std::find(choices.begin(), choices.end(), value_) != choices.end()) return;
    std::string expected;
    for (const Json& choice : choices) expected += (expected.empty() ? "" : " or ") + to_text(choice);
    refuse(expected);
  }

  /// The value must be an object of the given type with no members but "type" and these.
  void expect_object(std::string_view type, std::initializer_list<std::string_view> members) const {
    if (!value_.is_object()) refuse(fmt::format("an object of type {}", type));
    member("type").expect({type});
    for (const auto& [name, unused] : value_.items()) {
      if (name != "type" && std::find(members.begin(), members.end(), name) == members.end()) {
        throw InputError(fmt::format("{}: {}", subject_, member(name).path_), "not supported");
      }
    }
  }

  void expect_array(std::size_t size) const {
    if (!value_.is_array() || value_.size() != size) refuse(fmt::format("an array of {}", size));
  }

 private:
  const std::string& subject_;
  std::string path_;
  const Json& value_;
};

/// Options that only concern text positions, or are without effect where nothing is added in front of a text.
const std::vector<Json> either = {true, false, nullptr};
const std::vector<Json> off = {false, nullptr};

void check_byte_level(const Field& field, const std::vector<Json>& prefix_space,
                      const std::vector<Json>& use_regex) {
  field.expect_object("ByteLevel", {"add_prefix_space", "trim_offsets", "use_regex"});
  field.member("add_prefix_space").expect(prefix_space);
  field.member("trim_offsets").expect(either);
  field.member("use_regex").expect(use_regex);
}

void check_pre_tokenizer(const Field& field) {
  field.expect_object("Sequence", {"pretokenizers"});
  const Field steps = field.member("pretokenizers");
  const std::size_t splits = std::size(split_patterns);
  steps.expect_array(splits + 1);
  for (std::size_t i = 0; i < splits; ++i) {
    const Field split = steps.item(i);
    split.expect_object("Split", {"pattern", "behavior", "invert"});
    split.member("pattern").expect({Json{{"Regex", split_patterns[i]}}});
    split.member("behavior").expect({"Isolated"});
    split.member("invert").expect({false});
  }
  check_byte_level(steps.item(splits), {false}, {false});
}

void check_model(const Field& field) {
  field.expect_object("BPE", {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  field.member("dropout").expect({nullptr});
  field.member("unk_token").expect({nullptr});
  field.member("continuing_subword_prefix").expect({nullptr, ""});
  field.member("end_of_word_suffix").expect({nullptr, ""});
  field.member("fuse_unk").expect(off);
  field.member("byte_fallback").expect(off);
  field.member("ignore_merges").expect(off);
}

}  // namespace

void refuse_value(const std::string& subject, const std::string& path, const std::string& expected,
                  const Json& found) {
  constexpr std::size_t longest = 200;
  std::string text = found.is_null() ? "null or nothing" : to_text(found);
  if (text.size() > longest) text = replace_ill_formed_utf8(text.substr(0, longest)) + "...";
  throw InputError(path.empty() ? subject : fmt::format("{}: {}", subject, path), expected, text);
}

void check_tokenizer_options(const Json& root, const std::string& subject) {
  const Field file(subject, "", root);
  if (!root.is_object()) file.refuse("an object");
  const std::string_view known[] = {"version",        "truncation", "padding",
                                    "added_tokens",   "normalizer", "pre_tokenizer",
                                    "post_processor", "decoder",    "model"};
  for (const auto& [name, unused] : root.items()) {
    if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
      throw InputError(fmt::format("{}: {}", subject, name), "not supported");
    }
  }
  file.member("version").expect({"1.0"});
  file.member("truncation").expect({nullptr});
  file.member("padding").expect({nullptr});
  file.member("normalizer").expect({nullptr, Json{{"type", "Sequence"}, {"normalizers", Json::array()}}});
  check_pre_tokenizer(file.member("pre_tokenizer"));
  if (const auto found = root.find("post_processor"); found != root.end() && !found->is_null()) {
    check_byte_level(file.member("post_processor"), either, either);
  }
  check_byte_level(file.member("decoder"), either, either);
  check_model(file.member("model"));
}

}  // namespace thalweg::text
