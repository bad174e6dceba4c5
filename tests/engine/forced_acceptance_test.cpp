// However many drafts a verification accepts, text and caches end up as plain decoding leaves them
// (cases.md I1, I2). The drafts come from a backend that knows the right answer and spoils it where it is
// told.
#include "engine_support.hpp"

namespace thalweg::engine {
namespace {

using testing::Answer;
using testing::ask;
using testing::model_of;
using testing::random_prompt;
using testing::same;
using testing::sampled;

/// A backend whose drafts are right exactly as often as wanted: of the tokens at positions p, p + 1, ...
/// the first `right(step)` are those of `answer`, the next one is wrong.
class ForcedDrafts : public backend::Backend {
 public:
  using Right = std::function<int(std::int64_t draft)>;
  ForcedDrafts(std::unique_ptr<backend::Backend> inner, std::vector<std::int32_t> answer, Right right)
      : inner_(std::move(inner)), answer_(std::move(answer)), right_(std::move(right)) {}

  std::string describe() const override { return inner_->describe() + ", forced drafts"; }
  const model::Model& model() const override { return inner_->model(); }
  const model::PageLayout& page_layout() const override { return inner_->page_layout(); }
  const model::SlotLayout& slot_layout() const override { return inner_->slot_layout(); }
  model::Precision precision() const override { return inner_->precision(); }
  void run(const model::StepPlan& plan) override { inner_->run(plan); }
  std::span<const float> logits(std::size_t i) const override { return inner_->logits(i); }
  void read_page(std::int32_t page, std::span<std::uint8_t> bytes) const override {
    inner_->read_page(page, bytes);
  }
  void write_page(std::int32_t page, std::span<const std::uint8_t> bytes) override {
    inner_->write_page(page, bytes);
  }
  void copy_page(std::int32_t from, std::int32_t to) override { inner_->copy_page(from, to); }
  void read_slot(std::int32_t slot, std::size_t offset, std::span<std::uint8_t> bytes) const override {
    inner_->read_slot(slot, offset, bytes);
  }
  void write_slot(std::int32_t slot, std::size_t offset, std::span<const std::uint8_t> bytes) override {
    inner_->write_slot(slot, offset, bytes);
  }
  void copy_slot(std::int32_t from, std::int32_t to, std::size_t offset, std::size_t size) override {
    inner_->copy_slot(from, to, offset, size);
  }
  void clear_slot(std::int32_t slot) override { inner_->clear_slot(slot); }
  void observe(model::Observer* observer) override { inner_->observe(observer); }

  backend::DraftResult draft(std::span<const model::DraftSequence> sequences,
                             const backend::DraftChoice& choose) override {
    const backend::DraftResult drafted = inner_->draft(sequences, choose);
    tokens_.assign(drafted.tokens.begin(), drafted.tokens.end());
    const std::size_t block = tokens_.size() / sequences.size();
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const int right = right_(drafts_++);
      for (std::size_t i = 0; i < block; ++i) {
        const std::size_t position = static_cast<std::size_t>(sequences[s].position) + 1 + i;
        const std::int32_t token = position < answer_.size() ? answer_[position] : 0;
        tokens_[s * block + i] = static_cast<int>(i) < right ? token : token ^ 1;
      }
    }
    return {tokens_, drafted.confidence_logits};
  }

 private:
  std::unique_ptr<backend::Backend> inner_;
  std::vector<std::int32_t> answer_;  ///< prompt and output, by position
  Right right_;
  std::int64_t drafts_ = 0;
  std::vector<std::int32_t> tokens_;
};

constexpr std::int64_t kTokens = 61;

Request question(double temperature) {
  Request request = sampled(random_prompt(model_of("mini"), 150, 3), kTokens);
  request.sampling.temperature = temperature;
  request.sampling.repetition_penalty = 1.1;
  request.sampling.logprobs = 2;
  return request;
}

/// An answer, the one to a prompt that goes on from it, and which tokens were accepted drafts.
struct Talk {
  Answer first;
  Answer second;
  std::vector<bool> accepted;
};

Talk talk(Engine& engine, const Request& request) {
  Talk talk;
  const auto first =
      ask(engine, request, [&](const Event& event) { talk.accepted.push_back(event.accepted_draft); });
  engine.drain();
  engine.check_invariants();
  talk.first = first->front();
  Request next = request;
  next.prompt.insert(next.prompt.end(), talk.first.tokens.begin(), talk.first.tokens.end());
  next.prompt.push_back(7);
  next.sampling.max_tokens = 4;
  const auto second = ask(engine, next);
  engine.drain();
  engine.check_invariants();
  talk.second = second->front();
  return talk;
}

Talk plain(const Request& request) {
  Engine engine(model_of("mini"), testing::device_options());
  return talk(engine, request);
}

Talk forced(const Request& request, const Talk& plain, ForcedDrafts::Right right) {
  EngineOptions options = testing::device_options();
  options.speculation = parse_speculation("fixed:5");
  std::vector<std::int32_t> answer = request.prompt;
  answer.insert(answer.end(), plain.first.tokens.begin(), plain.first.tokens.end());
  Engine engine(model_of("mini"), options, [&](std::unique_ptr<backend::Backend> inner) {
    return std::make_unique<ForcedDrafts>(std::move(inner), answer, std::move(right));
  });
  return talk(engine, request);
}

void expect_equal(const Talk& a, const Talk& b) {
  EXPECT_EQ(a.first.tokens, b.first.tokens);
  EXPECT_EQ(a.first.text, b.first.text);
  EXPECT_TRUE(same(a.first.logprobs, b.first.logprobs));
  // What a second prompt finds in the cache is what the first answer left there.
  EXPECT_EQ(a.second.usage.reused_tokens, b.second.usage.reused_tokens);
  EXPECT_EQ(a.second.tokens, b.second.tokens);
  EXPECT_TRUE(same(a.second.logprobs, b.second.logprobs));
}

class ForcedAcceptance : public ::testing::TestWithParam<int> {};

TEST_P(ForcedAcceptance, OfTheSameNumberOfDraftsEveryStepEqualsPlainDecoding) {
  const int right = GetParam();
  for (const double temperature : {0.0, 1.0}) {
    const Request request = question(temperature);
    const Talk expected = plain(request);
    ASSERT_EQ(static_cast<std::int64_t>(expected.first.tokens.size()), kTokens);
    const Talk found = forced(request, expected, [=](std::int64_t) { return right; });
    expect_equal(found, expected);
    // The first token comes from the prompt; then every step gives the accepted drafts and one token more.
    for (std::size_t i = 1; i < static_cast<std::size_t>(kTokens); ++i) {
      const bool draft = (i - 1) % static_cast<std::size_t>(right + 1) < static_cast<std::size_t>(right);
      EXPECT_EQ(found.accepted[i], draft) << "token " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ForcedAcceptance, ::testing::Values(0, 1, 2, 3, 4, 5));

TEST(ForcedAcceptanceMixed, OfAnotherNumberEveryStepEqualsPlainDecoding) {
  const Request request = question(1);
  const Talk expected = plain(request);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::mt19937_64 random(seed);
    expect_equal(forced(request, expected, [&](std::int64_t) { return static_cast<int>(random() % 6); }),
                 expected);
  }
}

}  // namespace
}  // namespace thalweg::engine
