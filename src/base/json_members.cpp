#include "base/json_members.hpp"

#include <cstddef>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace thalweg {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxNestedMembers = 4096;

// Builds the value of one member at a time. `open_` holds the objects and arrays being read below that
// member.
class MemberReader final : public nlohmann::json_sax<Json> {
 public:
  MemberReader(const std::string& subject, std::string_view container, const JsonMember& member)
      : subject_(subject), container_(container), member_(member) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return start(Json::object()); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t) override { return start(Json::array()); }
  bool end_array() override { return end(); }

  bool key(string_t& name) override {
    if (!open_.empty()) {
      Open& parent = open_.back();
      parent.name = std::move(name);
      if (parent.value.contains(parent.name)) fail("appears twice");
      if (parent.value.size() >= kMaxNestedMembers) fail("more than 4096 members in one object");
      return true;
    }
    name_ = std::move(name);
    if (!names_[inside_ ? 1 : 0].insert(name_).second) fail("appears twice");
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    std::string_view message = error.what();
    if (const auto prefix = message.find("] "); prefix != std::string_view::npos)
      message.remove_prefix(prefix + 2);
    fail(fmt::format("not valid JSON: {}", message));
  }

 private:
  struct Open {
    Json value;
    std::string name;  // of the member being read, if an object
  };

  [[noreturn]] void fail(const std::string& problem) const {
    std::string path = subject_;
    const auto append = [&](std::string_view name) {
      path += path.size() == subject_.size() ? ": " : ".";
      path += name;
    };
    if (inside_) append(container_);
    if (!name_.empty()) append(name_);
    for (const Open& open : open_) {
      if (!open.name.empty()) append(open.name);
    }
    throw InputError(path, problem);
  }

  void need_root() {
    if (!root_) throw InputError(subject_, "expected a JSON object, found another value");
    if (open_.empty() && streams()) fail("expected an object, found another value");
  }

  // Whether the value to come is the container whose members are handed out singly.
  bool streams() const { return !inside_ && !container_.empty() && name_ == container_; }

  bool add(Json value) {
    need_root();
    place(std::move(value));
    return true;
  }

  void place(Json value) {
    if (open_.empty()) {
      member_(inside_ ? std::string_view(container_) : std::string_view(), name_, std::move(value));
      name_.clear();
    } else if (Open& parent = open_.back(); parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else {
      parent.value[parent.name] = std::move(value);
      parent.name.clear();
    }
  }

  bool start(Json value) {
    if (!root_ && value.is_object()) {
      root_ = true;
      return true;
    }
    if (root_ && open_.empty() && streams() && value.is_object()) {
      name_.clear();
      inside_ = true;
      return true;
    }
    need_root();
    if (open_.size() + 1 >= kMaxDepth) fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    open_.push_back({std::move(value), {}});
    return true;
  }

  bool end() {
    if (open_.empty()) {  // the root or the streamed container
      inside_ = false;
      return true;
    }
    Json value = std::move(open_.back().value);
    open_.pop_back();
    place(std::move(value));
    return true;
  }

  const std::string& subject_;
  const std::string container_;
  const JsonMember& member_;
  bool root_ = false;
  bool inside_ = false;
  std::string name_;  // member being read of the root or the container
  std::unordered_set<std::string> names_[2];
  std::vector<Open> open_;
};

}  // namespace

void read_json_members(std::string_view text, const std::string& subject, std::string_view container,
                       const JsonMember& member) {
  if (const auto zero = text.find('\0'); zero != text.npos) {  // nlohmann takes it for the end of the text
    throw InputError(subject, fmt::format("not valid JSON: a zero byte at offset {}", zero));
  }
  MemberReader reader(subject, container, member);
  Json::sax_parse(text.begin(), text.end(), &reader);
}

}  // namespace thalweg
