#include "text/tokenizer_file.hpp"

#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "text/tokenizer_byte_alphabet.hpp"
#include "text/tokenizer_json.hpp"
#include "text/tokenizer_options.hpp"
#include "text/tokenizer_spelling_index.hpp"

namespace thalweg::text {
namespace {

std::string id_range() {
  return fmt::format("an id in [0, {})", token_id_limit);
}

/// Turns the parts of the document into the tables of TokenizerFile, checking one against the other.
class Builder {
 public:
  Builder(const TokenizerJson& json, const std::string& subject)
      : json_(json), subject_(subject), index_(json.vocabulary) {}

  TokenizerFile build() {
    place_vocabulary();
    BytePairEncoder encoder = make_encoder();
    std::vector<AddedToken> added = add_tokens();
    return {std::move(bytes_), std::move(encoder), std::move(added)};
  }

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& problem) const {
    throw InputError(fmt::format("{}: {}", subject_, path), problem);
  }

  TokenId checked_id(const Json& value, const std::string& path) const {
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() < token_id_limit;
    if (!fits) refuse_value(subject_, path, id_range(), value);
    return value.get<TokenId>();
  }

  void place(TokenId id, std::string_view spelling) {
    if (static_cast<std::size_t>(id) >= bytes_.size()) bytes_.resize(id + 1);
    bytes_[id] = bytes_of_spelling(spelling).value_or(std::string(spelling));
  }

  bool is_taken(TokenId id) const {
    return static_cast<std::size_t>(id) < bytes_.size() && !bytes_[id].empty();
  }

  void place_vocabulary() {
    if (json_.vocabulary.size() == 0)
      refuse("model.vocab", "expected an object of spellings and ids that is not empty");
    if (const auto i = index_.repeated()) {
      refuse("model.vocab", fmt::format("\"{}\" appears twice", json_.vocabulary[*i]));
    }
    for (std::size_t i = 0; i < json_.vocabulary.size(); ++i) {
      const std::string_view spelling = json_.vocabulary[i];
      const std::int64_t id = json_.vocabulary_ids[i];
      const auto path = [&] { return fmt::format("model.vocab[\"{}\"]", spelling); };  // only for errors
      if (spelling.empty()) refuse("model.vocab", "an entry has no spelling");
      if (id < 0 || id >= token_id_limit) refuse_value(subject_, path(), id_range(), id);
      if (is_taken(static_cast<TokenId>(id)))
        refuse(path(), fmt::format("id {} belongs to another entry too", id));
      place(static_cast<TokenId>(id), spelling);
    }
  }

  TokenId id_at(std::size_t i) const { return static_cast<TokenId>(json_.vocabulary_ids[i]); }

  BytePairEncoder make_encoder() const {
    std::array<TokenId, 256> byte_ids;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::string spelling = spelling_of_bytes(std::string(1, static_cast<char>(byte)));
      const auto found = index_.find(spelling);
      if (!found) refuse("model.vocab", fmt::format("no entry \"{}\" for byte 0x{:02x}", spelling, byte));
      byte_ids[byte] = id_at(*found);
    }
    if (!json_.has_merges) refuse("model.merges", "expected an array of pairs");
    const std::size_t count = json_.merges.size() / 2;
    BytePairEncoder encoder(byte_ids, count);
    std::string merged;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view left = json_.merges[2 * i], right = json_.merges[2 * i + 1];
      merged.assign(left).append(right);
      const auto id_of = [&](std::string_view spelling) {
        if (const auto found = index_.find(spelling)) return id_at(*found);
        refuse(fmt::format("model.merges[{}]", i), fmt::format("\"{}\" is not in the vocabulary", spelling));
      };
      const TokenId left_id = id_of(left), right_id = id_of(right);
      if (!encoder.add_merge(left_id, right_id, id_of(merged))) {
        refuse(fmt::format("model.merges[{}]", i), fmt::format("\"{} {}\" appears twice", left, right));
      }
    }
    return encoder;
  }

  std::vector<AddedToken> add_tokens() {
    std::vector<AddedToken> added;
    std::unordered_set<TokenId> ids;
    std::unordered_set<std::string> spellings;
    const auto found = json_.rest.find("added_tokens");
    const Json none;
    const Json& tokens = found == json_.rest.end() ? none : *found;
    if (!tokens.is_array()) refuse_value(subject_, "added_tokens", "an array", tokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string path = fmt::format("added_tokens[{}]", i);
      AddedToken token = read_added_token(tokens[i], path);
      const auto base = index_.find(token.spelling);
      if (base ? id_at(*base) != token.id : is_taken(token.id) && !ids.contains(token.id)) {
        refuse(path,
               fmt::format("\"{}\" has id {}, which model.vocab gives otherwise", token.spelling, token.id));
      }
      if (!ids.insert(token.id).second) refuse(path, fmt::format("id {} appears twice", token.id));
      if (!spellings.insert(token.spelling).second)
        refuse(path, fmt::format("\"{}\" appears twice", token.spelling));
      if (!base) place(token.id, token.spelling);
      added.push_back(std::move(token));
    }
    return added;
  }

  AddedToken read_added_token(const Json& entry, const std::string& path) const {
    if (!entry.is_object()) refuse_value(subject_, path, "an object", entry);
    AddedToken token{-1, {}};
    for (const auto& [name, value] : entry.items()) {
      const std::string field = path + "." + name;
      if (name == "id") {
        token.id = checked_id(value, field);
      } else if (name == "content") {
        if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
          refuse_value(subject_, field, "a string that is not empty", value);
        }
        token.spelling = value.get<std::string>();
      } else if (name == "single_word" || name == "lstrip" || name == "rstrip") {
        if (value != false) refuse_value(subject_, field, "false", value);
      } else if (name == "normalized" || name == "special") {
        // Without a normaliser the first has no effect; what is special is decided by spelling.
        if (!value.is_boolean()) refuse_value(subject_, field, "a boolean", value);
      } else {
        refuse(field, "not supported");
      }
    }
    if (token.id < 0) refuse(path, "has no id");
    if (token.spelling.empty()) refuse(path, "has no content");
    return token;
  }

  const TokenizerJson& json_;
  const std::string& subject_;
  SpellingIndex index_;
  std::vector<std::string> bytes_;
};

}  // namespace

TokenizerFile read_tokenizer_file(std::string_view json, const std::string& subject) {
  const TokenizerJson document = read_tokenizer_json(json, subject);
  check_tokenizer_options(document.rest, subject);
  return Builder(document, subject).build();
}

}  // namespace thalweg::text
