// JSON Schemas: whatever is read is written as a grammar or refused, and validates any JSON text.
#include <cstdint>
#include <string_view>

#include "schema/schema.hpp"

// The input is a schema, a line feed and a JSON text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thalweg;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\n');
  try {
    const schema::Schema schema = schema::parse_schema(input.substr(0, end));
    if (end != input.npos) {
      try {
        schema::validate_text(schema, input.substr(end + 1));
      } catch (const InputError&) {
      }
    }
    schema::to_ebnf(schema);
  } catch (const InputError&) {
  }
  return 0;
}
