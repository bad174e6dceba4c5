// What the service needs of an engine. The tests put a recorded backend in its place.
#pragma once

#include <cstdint>

#include "engine/engine.hpp"
#include "text/special_tokens.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::serve {

/// All of it may be called from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  /// As engine::Engine::submit. The sink must not block.
  virtual engine::RequestId submit(engine::Request request, engine::EventSink sink) = 0;
  virtual void cancel(engine::RequestId id) = 0;
  virtual engine::EngineStatistics statistics() const = 0;
  /// Tokens of prompt and answer together at most.
  virtual std::int64_t context() const = 0;
  virtual const text::Tokenizer& tokenizer() const = 0;
  virtual const text::SpecialTokens& specials() const = 0;
};

/// The engine itself; `model` and `engine` must outlive it. Throws InputError if the model's tokenizer lacks
/// the tokens of the chat format.
class EngineBackend final : public Backend {
 public:
  EngineBackend(const engine::LoadedModel& model, engine::Engine& engine)
      : model_(model), engine_(engine), specials_(text::find_special_tokens(model.tokenizer)) {}

  engine::RequestId submit(engine::Request request, engine::EventSink sink) override {
    return engine_.submit(std::move(request), std::move(sink));
  }
  void cancel(engine::RequestId id) override { engine_.cancel(id); }
  engine::EngineStatistics statistics() const override { return engine_.statistics(); }
  std::int64_t context() const override { return engine_.context(); }
  const text::Tokenizer& tokenizer() const override { return model_.tokenizer; }
  const text::SpecialTokens& specials() const override { return specials_; }

 private:
  const engine::LoadedModel& model_;
  engine::Engine& engine_;
  text::SpecialTokens specials_;
};

}  // namespace thalweg::serve
