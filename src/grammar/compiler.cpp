#include "grammar/compiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "grammar/compiled_rules.hpp"
#include "grammar/rules.hpp"
#include "grammar/xgrammar_hooks.hpp"

namespace thalweg::grammar {
namespace {

using Clock = std::chrono::steady_clock;

// Added tokens are never text. The markup token gets bytes that no text has, so that only its id matches.
xgrammar::TokenizerInfo vocabulary_of(const text::Tokenizer& tokenizer, std::int32_t vocab_size,
                                      std::int32_t eos_token, std::int32_t markup) {
  std::vector<std::string> spellings(static_cast<std::size_t>(tokenizer.vocab_size()));
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_added(id)) spellings[static_cast<std::size_t>(id)] = tokenizer.token_bytes(id);
  }
  if (markup >= 0) spellings[static_cast<std::size_t>(markup)] = "\xFF";
  return {spellings, xgrammar::VocabType::RAW, vocab_size, std::vector<std::int32_t>{eos_token}};
}

}  // namespace

class Compiler::Thread {
 public:
  Thread(const text::Tokenizer& tokenizer, std::int32_t vocab_size, std::int32_t eos_token,
         std::size_t cache_bytes)
      : tokenizer_(tokenizer),
        vocab_size_(vocab_size),
        eos_token_(eos_token),
        markup_(tokenizer.added_token("｜DSML｜").value_or(-1)),
        cache_bytes_(cache_bytes),
        thread_([this] { run(); }) {}

  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_one();
    thread_.join();
    for (Work& work : queue_)
      work.done(nullptr, std::make_exception_ptr(WorkError("the engine is stopping")));
  }

  void add(const Constraint& constraint, Done done) {
    Work work{is_slow(constraint) ? "" : to_rules(constraint, markup_), constraint, start_of(constraint),
              std::move(done)};
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= GrammarLimits::waiting)
      throw WorkError("too many grammars are waiting to be compiled");
    queue_.push_back(std::move(work));
    arrived_.notify_one();
  }

  void check(const Constraint& constraint) const {
    if (!is_slow(constraint)) to_rules(constraint, markup_);
    if (!constraint.after_token || (*constraint.after_token >= 0 && *constraint.after_token < vocab_size_))
      return;
    throw InputError("after_token", fmt::format("a token id below {}", vocab_size_),
                     fmt::format("{}", *constraint.after_token));
  }

  Statistics statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  using Rules = CompiledGrammar::Rules;
  struct Work {
    std::string rules;  // empty: still to be made
    Constraint constraint;
    CompiledGrammar::Start start;
    Done done;
  };
  struct Kept {
    std::string rules;
    std::shared_ptr<const Rules> compiled;
    std::size_t bytes;
  };

  // Reading a hostile schema takes as long as a compilation: callers must not wait for it.
  static bool is_slow(const Constraint& constraint) {
    return constraint.kind == Constraint::Kind::json_schema ||
           std::any_of(constraint.tools.begin(), constraint.tools.end(),
                       [](const ToolForm& tool) { return tool.parameters.has_value(); });
  }

  CompiledGrammar::Start start_of(const Constraint& constraint) const {
    if (constraint.kind != Constraint::Kind::tool_calls) return {constraint.after_token, std::nullopt};
    if (constraint.calls_required) return {};
    return {std::nullopt, markup_};
  }

  void run() {
    while (true) {
      Work work;
      {
        std::unique_lock lock(mutex_);
        arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (stopping_) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      std::shared_ptr<const CompiledGrammar> grammar;
      std::exception_ptr error;
      try {
        if (work.rules.empty()) work.rules = to_rules(work.constraint, markup_);
        grammar = std::make_shared<CompiledGrammar>(find_or_compile(work), work.start);
      } catch (...) {
        error = std::current_exception();
        const std::lock_guard lock(mutex_);
        ++statistics_.refused;
      }
      work.done(std::move(grammar), error);
    }
  }

  std::shared_ptr<const Rules> find_or_compile(const Work& work) {
    if (const auto found = index_.find(work.rules); found != index_.end()) {
      kept_.splice(kept_.begin(), kept_, found->second);
      const std::lock_guard lock(mutex_);
      ++statistics_.reused;
      return kept_.front().compiled;
    }
    if (!compiler_) {
      compiler_.emplace(vocabulary_of(tokenizer_, vocab_size_, eos_token_, markup_), /*max_threads=*/1,
                        /*cache_enabled=*/false);
    }
    const auto begin = Clock::now();
    std::shared_ptr<const Rules> compiled = compile(work);
    keep(work.rules, compiled);
    const std::lock_guard lock(mutex_);
    ++statistics_.compiled;
    statistics_.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    statistics_.cached_bytes = kept_bytes_;
    return compiled;
  }

  std::shared_ptr<const Rules> compile(const Work& work) {
    CompileWatch watch{computed_time() + GrammarLimits::compile_time, 0, {}};
    const Watched watched(watch);
    const std::string subject = subject_of(work.constraint);
    try {
      auto rules = std::make_shared<Rules>(
          Rules{compiler_->CompileGrammar(work.rules), &tokenizer_, eos_token_, vocab_size_});
      if (!watch.warning.empty()) throw InputError(subject, watch.warning);
      Matcher first(std::make_shared<CompiledGrammar>(rules, CompiledGrammar::Start{}));
      std::vector<std::uint32_t> mask(first.mask_words());
      const bool masked = first.fill_mask(mask);
      if (masked && std::all_of(mask.begin(), mask.end(), [](std::uint32_t word) { return word == 0; }))
        throw InputError(subject, "an output that it matches", "none");
      return rules;
    } catch (const Error&) {
      throw;
    } catch (const CompileTimeout&) {
      throw InputError(subject,
                       fmt::format("what compiles within {} ms", GrammarLimits::compile_time.count()),
                       "something larger");
    } catch (const GrammarRefused& refused) {
      throw InputError(subject, refused.what());
    } catch (const std::exception&) {
      throw InputError(subject, "cannot be compiled");
    }
  }

  void keep(const std::string& rules, const std::shared_ptr<const Rules>& compiled) {
    const std::size_t bytes = compiled->compiled.MemorySizeBytes() + 2 * rules.size();
    if (bytes > cache_bytes_) return;
    kept_.push_front({rules, compiled, bytes});
    index_[rules] = kept_.begin();
    kept_bytes_ += bytes;
    while (kept_bytes_ > cache_bytes_) {
      kept_bytes_ -= kept_.back().bytes;
      index_.erase(kept_.back().rules);
      kept_.pop_back();
    }
  }

  const text::Tokenizer& tokenizer_;
  std::int32_t vocab_size_;
  std::int32_t eos_token_;
  std::int32_t markup_;
  std::size_t cache_bytes_;

  // Shared with callers.
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Work> queue_;
  bool stopping_ = false;
  Statistics statistics_;

  // The compiler's thread only. `kept_`: most recently used first.
  std::optional<xgrammar::GrammarCompiler> compiler_;
  std::list<Kept> kept_;
  std::unordered_map<std::string, std::list<Kept>::iterator> index_;
  std::size_t kept_bytes_ = 0;
  std::thread thread_;
};

Compiler::Compiler(const text::Tokenizer& tokenizer, std::int32_t vocab_size, std::int32_t eos_token,
                   std::size_t cache_bytes)
    : thread_(std::make_unique<Thread>(tokenizer, vocab_size, eos_token, cache_bytes)) {}
Compiler::~Compiler() = default;

void Compiler::check(const Constraint& constraint) const {
  thread_->check(constraint);
}

void Compiler::compile(Constraint constraint, Done done) {
  thread_->add(constraint, std::move(done));
}

std::future<std::shared_ptr<const CompiledGrammar>> Compiler::compile(Constraint constraint) {
  auto promise = std::make_shared<std::promise<std::shared_ptr<const CompiledGrammar>>>();
  auto future = promise->get_future();
  compile(std::move(constraint),
          [promise](std::shared_ptr<const CompiledGrammar> grammar, std::exception_ptr error) {
            if (error) {
              promise->set_exception(error);
            } else {
              promise->set_value(std::move(grammar));
            }
          });
  return future;
}

Compiler::Statistics Compiler::statistics() const {
  return thread_->statistics();
}

}  // namespace thalweg::grammar
