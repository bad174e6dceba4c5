// Request bodies of the three APIs: whatever the bytes, the reader refuses them cleanly or makes a prompt.
// The first byte picks the API.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/chat_encoding.hpp"
#include "wire/fields.hpp"
#include "wire/read_request.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thalweg;
  if (size == 0) return 0;
  const auto api = static_cast<wire::Api>(data[0] % 3);
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    wire::Request request = wire::read_request(api, wire::parse_body(body), wire::Policy{});
    text::check(request.parsing, "parsing");
    const text::Prompt prompt = text::render(std::move(request.conversation));
    bool after_text = false;
    for (const text::Segment& segment : prompt.segments) {
      const auto* plain = std::get_if<std::string>(&segment);
      if (plain != nullptr && (plain->empty() || after_text)) std::abort();
      after_text = plain != nullptr;
    }
  } catch (const wire::RequestError&) {
  }
  return 0;
}
