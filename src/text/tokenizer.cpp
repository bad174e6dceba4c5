#include "text/tokenizer.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "text/bpe.hpp"
#include "text/pretokenizer.hpp"
#include "text/tokenizer_added_tokens.hpp"
#include "text/tokenizer_file.hpp"
#include "text/utf8.hpp"

namespace thalweg::text {

struct Tokenizer::Data {
  explicit Data(TokenizerFile file)
      : bytes(std::move(file.bytes)),
        encoder(std::move(file.encoder)),
        added(file.added),
        is_added(bytes.size()) {
    for (const AddedToken& token : file.added) is_added[token.id] = true;
  }

  bool has(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < bytes.size(); }

  void encode_plain(std::string_view text, BytePairEncoder::Scratch& scratch,
                    std::vector<TokenId>& out) const {
    Pretokenizer pieces(text);
    for (std::string_view piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
      encoder.encode(piece, scratch, out);
    }
  }

  std::vector<std::string> bytes;  // of each id
  BytePairEncoder encoder;
  AddedTokenTree added;
  std::vector<bool> is_added;  // of each id
};

namespace {

void check_text(std::string_view text) {
  // Positions inside a piece are 32-bit numbers.
  if (text.size() >= UINT32_MAX) throw InputError("text", "longer than 4 GiB");
  const std::size_t good = find_ill_formed_utf8(text);
  if (good != text.size()) throw InputError("text", fmt::format("not valid UTF-8 at byte {}", good));
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Data> data) : data_(std::move(data)) {}
Tokenizer::Tokenizer(Tokenizer&& other) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&& other) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::filesystem::path& tokenizer_json) {
  const MappedFile file(tokenizer_json);
  return parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
               tokenizer_json.string());
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& subject) {
  return Tokenizer(std::make_unique<const Data>(read_tokenizer_file(json, subject)));
}

int Tokenizer::vocab_size() const {
  return static_cast<int>(data_->bytes.size());
}

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  check_text(text);
  std::vector<TokenId> ids;
  BytePairEncoder::Scratch scratch;
  std::size_t at = 0;
  while (const auto match = data_->added.find(text, at)) {
    data_->encode_plain(text.substr(at, match->begin - at), scratch, ids);
    ids.push_back(match->id);
    at = match->begin + match->length;
  }
  data_->encode_plain(text.substr(at), scratch, ids);
  return ids;
}

std::vector<TokenId> Tokenizer::encode_plain(std::string_view text) const {
  check_text(text);
  std::vector<TokenId> ids;
  BytePairEncoder::Scratch scratch;
  data_->encode_plain(text, scratch, ids);
  return ids;
}

std::optional<TokenId> Tokenizer::added_token(std::string_view spelling) const {
  return data_->added.id_of(spelling);
}

bool Tokenizer::is_added(TokenId id) const {
  return data_->has(id) && data_->is_added[id];
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  return data_->has(id) ? std::string_view(data_->bytes[id]) : std::string_view();
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string bytes;
  for (const TokenId id : ids) bytes += token_bytes(id);
  return replace_ill_formed_utf8(bytes);
}

}  // namespace thalweg::text
