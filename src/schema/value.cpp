#include "schema/value.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"

namespace thalweg::schema {
namespace {

/// Builds a value from the events of nlohmann's parser, which keeps the spelling of numbers.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::string& subject, std::size_t depth, Repeated repeated)
      : subject_(subject), depth_(depth), repeated_(repeated) {}

  Value take() { return std::move(root_); }

  bool null() override { return add({nullptr}); }
  bool boolean(bool value) override { return add({value}); }
  bool number_integer(number_integer_t value) override {
    return add({Decimal::parse(std::to_string(value))});
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add({Decimal::parse(std::to_string(value))});
  }
  bool number_float(number_float_t, const string_t& text) override { return add({Decimal::parse(text)}); }
  bool string(string_t& value) override { return add({std::move(value)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open({Object{}}); }
  bool start_array(std::size_t) override { return open({Array{}}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    Open& object = open_.back();
    object.place = std::get<Object>(object.value.data).size();
    const auto [known, fresh] = object.names.emplace(name, object.place);
    if (!fresh && repeated_ == Repeated::refused)
      throw InputError(subject_, fmt::format("member \"{}\" appears twice", name));
    object.place = known->second;
    object.name = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    std::string_view message = error.what();
    if (const auto end = message.find("] "); end != std::string_view::npos) message.remove_prefix(end + 2);
    throw InputError(subject_, fmt::format("not valid JSON: {}", message));
  }

 private:
  struct Open {
    Value value;
    std::string name;       // of the member being read
    std::size_t place = 0;  // of that member
    std::unordered_map<std::string, std::size_t> names;
  };

  bool open(Value value) {
    if (open_.size() >= depth_)
      throw InputError(subject_, fmt::format("nested deeper than {} levels", depth_));
    open_.push_back({std::move(value), {}, 0, {}});
    return true;
  }
  bool close() {
    Value value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }
  bool add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = std::get_if<Array>(&open_.back().value.data)) {
      array->push_back(std::move(value));
    } else {
      auto& object = std::get<Object>(open_.back().value.data);
      if (open_.back().place < object.size()) {
        object[open_.back().place].second = std::move(value);
      } else {
        object.emplace_back(std::move(open_.back().name), std::move(value));
      }
    }
    return true;
  }

  const std::string& subject_;
  std::size_t depth_;
  Repeated repeated_;
  Value root_;
  std::vector<Open> open_;
};

bool equal_objects(const Object& a, const Object& b) {
  if (a.size() != b.size()) return false;
  std::vector<const Member*> left;
  std::vector<const Member*> right;
  for (const Member& member : a) left.push_back(&member);
  for (const Member& member : b) right.push_back(&member);
  const auto by_name = [](const Member* x, const Member* y) { return x->first < y->first; };
  std::sort(left.begin(), left.end(), by_name);
  std::sort(right.begin(), right.end(), by_name);
  return std::equal(left.begin(), left.end(), right.begin(), [](const Member* x, const Member* y) {
    return x->first == y->first && x->second == y->second;
  });
}

}  // namespace

const Value* Value::find(std::string_view name) const {
  const auto* object = as<Object>();
  if (object == nullptr) return nullptr;
  const auto found = std::find_if(object->begin(), object->end(),
                                  [&](const Member& member) { return member.first == name; });
  return found == object->end() ? nullptr : &found->second;
}

bool Value::operator==(const Value& other) const {
  if (data.index() != other.data.index()) return false;
  if (const auto* object = as<Object>()) return equal_objects(*object, *other.as<Object>());
  return data == other.data;
}

std::string_view type_name(const Value& value) {
  static constexpr std::string_view names[] = {"null", "boolean", "number", "string", "array", "object"};
  return names[value.data.index()];
}

std::string to_text(const Value& value) {
  if (value.as<std::nullptr_t>() != nullptr) return "null";
  if (const auto* boolean = value.as<bool>()) return *boolean ? "true" : "false";
  if (const auto* text = value.as<std::string>()) return thalweg::to_text(Json(*text));
  if (const auto* number = value.as<Decimal>()) {
    if (number->magnitude() < 40 && number->exponent > -40) return number->plain();
    return fmt::format("{}{}e{}", number->negative ? "-" : "", number->digits, number->exponent);
  }
  std::string text;
  if (const auto* array = value.as<Array>()) {
    for (const Value& item : *array) text += (text.empty() ? "" : ",") + to_text(item);
    return "[" + text + "]";
  }
  for (const Member& member : *value.as<Object>()) {
    text += (text.empty() ? "" : ",") + thalweg::to_text(Json(member.first)) + ":" + to_text(member.second);
  }
  return "{" + text + "}";
}

Value read_value(std::string_view text, const std::string& subject, std::size_t depth, Repeated repeated) {
  if (const auto zero = text.find('\0'); zero != text.npos)  // nlohmann takes it for the end of the text
    throw InputError(subject, fmt::format("not valid JSON: a zero byte at offset {}", zero));
  Builder builder(subject, depth, repeated);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Value to_value(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return {json.get<bool>()};
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return {Decimal::parse(json.dump())};
    case Json::value_t::string:
      return {json.get<std::string>()};
    case Json::value_t::array: {
      Array array;
      for (const Json& item : json) array.push_back(to_value(item));
      return {std::move(array)};
    }
    case Json::value_t::object: {
      Object object;
      for (const auto& member : json.items()) object.emplace_back(member.key(), to_value(member.value()));
      return {std::move(object)};
    }
    default:
      return {nullptr};
  }
}

}  // namespace thalweg::schema
