#include "schema/references.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace thalweg::schema {
namespace {

struct Uri {
  std::string scheme, authority, path, query;
  bool has_authority = false;
  bool has_query = false;
};

Uri split(std::string_view text) {
  Uri uri;
  text = text.substr(0, text.find('#'));
  const std::size_t colon = text.find(':');
  if (colon != text.npos && colon > 0 && text.substr(0, colon).find_first_of("/?") == text.npos) {
    uri.scheme = text.substr(0, colon);
    text.remove_prefix(colon + 1);
  }
  if (text.starts_with("//")) {
    const std::size_t end = std::min(text.find_first_of("/?", 2), text.size());
    uri.has_authority = true;
    uri.authority = text.substr(2, end - 2);
    text.remove_prefix(end);
  }
  const std::size_t question = text.find('?');
  uri.path = text.substr(0, question);
  if (question != text.npos) {
    uri.has_query = true;
    uri.query = text.substr(question + 1);
  }
  return uri;
}

std::string join(const Uri& uri) {
  std::string text = uri.scheme.empty() ? "" : uri.scheme + ":";
  if (uri.has_authority) text += "//" + uri.authority;
  text += uri.path;
  if (uri.has_query) text += "?" + uri.query;
  return text;
}

std::string remove_dots(const std::string& path) {
  std::vector<std::string> segments;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string segment = path.substr(begin, end - begin);
    const bool last = end == path.size();
    if (segment == "..") {
      if (segments.size() > 1) segments.pop_back();
      if (last) segments.emplace_back();
    } else if (segment != ".") {
      segments.push_back(segment);
    } else if (last) {
      segments.emplace_back();
    }
    begin = end + 1;
  }
  std::string result;
  for (std::size_t i = 0; i < segments.size(); ++i) result += (i > 0 ? "/" : "") + segments[i];
  return result;
}

std::string merge(const Uri& base, const std::string& path) {
  if (base.has_authority && base.path.empty()) return "/" + path;
  const std::size_t slash = base.path.rfind('/');
  return slash == std::string::npos ? path : base.path.substr(0, slash + 1) + path;
}

int hex_digit(char c) {
  int value = -1;
  std::from_chars(&c, &c + 1, value, 16);
  return value;
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    if (escape) {
      result += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string unescaped(std::string_view token) {
  std::string result;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      result += token[++i] == '0' ? '~' : '/';
    } else {
      result += token[i];
    }
  }
  return result;
}

const Value* follow(const Value* place, std::string_view pointer) {
  while (place != nullptr && !pointer.empty()) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string token = unescaped(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    if (const auto* array = place->as<Array>()) {
      std::size_t index = array->size();
      const auto [last, error] = std::from_chars(token.data(), token.data() + token.size(), index);
      const bool valid = error == std::errc() && last == token.data() + token.size() && index < array->size();
      place = valid ? &(*array)[index] : nullptr;
    } else {
      place = place->find(token);
    }
  }
  return place;
}

}  // namespace

std::string resolve_uri(std::string_view base_text, std::string_view reference) {
  const Uri base = split(base_text);
  Uri uri = split(reference);
  if (!uri.scheme.empty()) return join(uri);
  uri.scheme = base.scheme;
  if (uri.has_authority) return join(uri);
  uri.authority = base.authority;
  uri.has_authority = base.has_authority;
  if (uri.path.empty()) {
    uri.path = base.path;
    if (!uri.has_query) {
      uri.query = base.query;
      uri.has_query = base.has_query;
    }
  } else {
    uri.path = remove_dots(uri.path.front() == '/' ? uri.path : merge(base, uri.path));
  }
  return join(uri);
}

bool References::add_resource(const std::string& uri, const Value& root) {
  return resources_.emplace(uri, &root).second;
}

bool References::add_anchor(const std::string& base, const std::string& name, NodeId node) {
  return anchors_.emplace(base + "#" + name, node).second;
}

std::optional<NodeId> References::find(const std::string& base, std::string_view reference) const {
  const std::string uri = resolve_uri(base, reference);
  const std::size_t hash = reference.find('#');
  const std::string fragment = hash == reference.npos ? "" : percent_decoded(reference.substr(hash + 1));
  if (!fragment.empty() && fragment.front() != '/') {
    const auto found = anchors_.find(uri + "#" + fragment);
    return found == anchors_.end() ? std::nullopt : std::optional(found->second);
  }
  const auto resource = resources_.find(uri);
  if (resource == resources_.end()) return std::nullopt;
  const Value* place = follow(resource->second, fragment);
  const auto found = nodes_.find(place);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace thalweg::schema
