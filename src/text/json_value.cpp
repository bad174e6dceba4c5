#include "text/json_value.hpp"

#include <string>

#include "base/json.hpp"

namespace thalweg::text {
namespace {

// Accepts every value and counts nesting; each function returns whether reading goes on.
class DepthLimit final : public nlohmann::json_sax<Json> {
 public:
  explicit DepthLimit(std::size_t room) : room_(room) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return descend(); }
  bool key(string_t&) override { return true; }
  bool end_object() override { return ascend(); }
  bool start_array(std::size_t) override { return descend(); }
  bool end_array() override { return ascend(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool descend() {
    if (room_ == 0) return false;
    --room_;
    return true;
  }
  bool ascend() {
    ++room_;
    return true;
  }

  std::size_t room_;
};

}  // namespace

bool is_json_value(std::string_view text, std::size_t depth) {
  if (text.find('\0') != text.npos) return false;  // nlohmann takes a zero byte for the end of the text
  DepthLimit sax(depth);
  return Json::sax_parse(text.begin(), text.end(), &sax);
}

}  // namespace thalweg::text
