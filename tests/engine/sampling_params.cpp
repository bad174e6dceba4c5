#include "engine/sampling/sampling_params.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace thalweg::engine {
namespace {

constexpr std::int32_t vocab = 100;

struct BadParams {
  std::string field;
  std::function<void(SamplingParams&)> spoil;
};

std::vector<BadParams> bad_params() {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  return {
      {"temperature", [](auto& p) { p.temperature = -0.1; }},
      {"temperature", [](auto& p) { p.temperature = 2.001; }},
      {"temperature", [](auto& p) { p.temperature = 1e-300; }},
      {"temperature", [=](auto& p) { p.temperature = nan; }},
      {"temperature", [=](auto& p) { p.temperature = infinity; }},
      {"top_k", [](auto& p) { p.top_k = -2; }},
      {"top_p", [](auto& p) { p.top_p = 0; }},
      {"top_p", [](auto& p) { p.top_p = 1.0001; }},
      {"top_p", [=](auto& p) { p.top_p = nan; }},
      {"min_p", [](auto& p) { p.min_p = -0.01; }},
      {"min_p", [](auto& p) { p.min_p = 1.01; }},
      {"min_p", [=](auto& p) { p.min_p = nan; }},
      {"repetition_penalty", [](auto& p) { p.repetition_penalty = 0; }},
      {"repetition_penalty", [](auto& p) { p.repetition_penalty = -1; }},
      {"repetition_penalty", [](auto& p) { p.repetition_penalty = 10.5; }},
      {"repetition_penalty", [=](auto& p) { p.repetition_penalty = nan; }},
      {"presence_penalty", [](auto& p) { p.presence_penalty = 2.5; }},
      {"presence_penalty", [=](auto& p) { p.presence_penalty = nan; }},
      {"frequency_penalty", [](auto& p) { p.frequency_penalty = -2.5; }},
      {"frequency_penalty", [=](auto& p) { p.frequency_penalty = infinity; }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{vocab, 1}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{-1, 1}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{7, 1}, {3, 1}, {7, 2}};
       }},
      {"logit_bias.7",
       [](auto& p) {
         p.logit_bias = {{7, 100.5F}};
       }},
      {"logit_bias.7",
       [](auto& p) {
         p.logit_bias = {{7, std::numeric_limits<float>::quiet_NaN()}};
       }},
      {"allowed_tokens", [](auto& p) { p.allowed_tokens.emplace(); }},
      {"allowed_tokens",
       [](auto& p) {
         p.allowed_tokens = {1, vocab};
       }},
      {"allowed_tokens",
       [](auto& p) {
         p.allowed_tokens = {1, 2}, p.banned_tokens = {2, 3, 1};
       }},
      {"banned_tokens", [](auto& p) { p.banned_tokens = {-5}; }},
      {"min_tokens", [](auto& p) { p.min_tokens = -1; }},
      {"min_tokens", [](auto& p) { p.min_tokens = 11, p.max_tokens = 10; }},
      {"max_tokens", [](auto& p) { p.max_tokens = 0; }},
      {"max_tokens", [](auto& p) { p.max_tokens = -3; }},
      {"stop_tokens", [](auto& p) { p.stop_tokens = {vocab}; }},
      {"stop_tokens", [](auto& p) { p.stop_tokens.assign(65, 1); }},
      {"stop_strings", [](auto& p) { p.stop_strings.assign(17, "x"); }},
      {"stop_strings[1]",
       [](auto& p) {
         p.stop_strings = {"x", ""};
       }},
      {"logprobs", [](auto& p) { p.logprobs = -1; }},
      {"filtered_logprobs", [](auto& p) { p.filtered_logprobs = 1001; }},
      {"prompt_logprobs", [](auto& p) { p.prompt_logprobs = -1; }},
      {"n", [](auto& p) { p.n = 0; }},
      {"n", [](auto& p) { p.n = 129; }},
  };
}

TEST(SamplingParams, DefaultsAreValidAndSampleTheModelItself) {
  const SamplingParams params;
  EXPECT_NO_THROW(validate(params, vocab));
  EXPECT_FALSE(params.is_greedy());
  EXPECT_FALSE(params.has_penalties());
}

TEST(SamplingParams, ValuesOutOfRangeAreRefusedByTheFieldsName) {
  for (const BadParams& bad : bad_params()) {
    SamplingParams params;
    bad.spoil(params);
    try {
      validate(params, vocab);
      ADD_FAILURE() << bad.field << " was accepted";
    } catch (const InputError& error) {
      EXPECT_EQ(error.subject(), bad.field) << error.what();
      EXPECT_NE(std::string(error.what()).find("expected"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("found"), std::string::npos) << error.what();
    }
  }
}

TEST(SamplingParams, MessageSaysWhatWasExpectedAndFound) {
  SamplingParams params;
  params.max_tokens = 0;
  try {
    validate(params, vocab);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "max_tokens: expected at least 1, found 0");
  }
}

TEST(SamplingParams, TheEndsOfEveryRangeAreAccepted) {
  SamplingParams params;
  params.temperature = 2;
  params.top_k = -1;
  params.top_p = 1e-9;
  params.min_p = 1;
  params.repetition_penalty = 10;
  params.presence_penalty = -2;
  params.frequency_penalty = 2;
  params.logit_bias = {{0, -100}, {vocab - 1, 100}};
  params.allowed_tokens = {0, vocab - 1};
  params.banned_tokens = {0};
  params.min_tokens = 1;
  params.max_tokens = 1;
  params.stop_strings.assign(16, "x");
  params.logprobs = 0;
  params.filtered_logprobs = 1000;
  params.n = 128;
  params.seed = ~std::uint64_t{0};
  EXPECT_NO_THROW(validate(params, vocab));
  params.temperature = 1e-9;
  EXPECT_NO_THROW(validate(params, vocab));
  params.temperature = 0;
  EXPECT_NO_THROW(validate(params, vocab));
}

}  // namespace
}  // namespace thalweg::engine
