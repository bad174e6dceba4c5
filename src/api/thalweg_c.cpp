// The C interface, on top of the C++ one.
#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "thalweg/thalweg.h"
#include "thalweg/thalweg.hpp"

struct thalweg_engine {
  thalweg::Engine engine;
};

namespace {

std::string text_of(const char* text) {
  return text == nullptr ? "" : text;
}

void tell(const std::exception& problem, char* error, size_t size) {
  if (error == nullptr || size == 0) return;
  const size_t length = std::min(std::strlen(problem.what()), size - 1);
  std::memcpy(error, problem.what(), length);
  error[length] = '\0';
}

thalweg_finish finish_of(const std::optional<thalweg::Finish>& finish) {
  if (!finish) return THALWEG_UNFINISHED;
  switch (*finish) {
    case thalweg::Finish::stop:
      return THALWEG_STOP;
    case thalweg::Finish::length:
      return THALWEG_LENGTH;
    case thalweg::Finish::aborted:
      return THALWEG_ABORTED;
    case thalweg::Finish::failed:
      break;
  }
  return THALWEG_FAILED;
}

thalweg::Request request_of(const thalweg_request& from) {
  thalweg::Request request;
  request.prompt = text_of(from.prompt);
  if (from.tokens != nullptr) request.tokens.assign(from.tokens, from.tokens + from.token_count);
  if (from.max_tokens != 0) request.max_tokens = from.max_tokens;
  request.temperature = from.temperature;
  request.top_p = from.top_p;
  request.top_k = from.top_k;
  if (from.has_seed != 0) request.seed = from.seed;
  for (size_t i = 0; i < from.stop_count; ++i) request.stop.push_back(text_of(from.stop[i]));
  request.ignore_eos = from.ignore_eos != 0;
  request.n = from.n;
  request.priority = from.priority;
  request.cache_salt = text_of(from.cache_salt);
  return request;
}

}  // namespace

extern "C" {

const char* thalweg_version(void) {
  return thalweg::version();
}

thalweg_options thalweg_default_options(void) {
  const thalweg::Options defaults;
  thalweg_options options{};
  options.sequences = defaults.sequences;
  options.batch_tokens = defaults.batch_tokens;
  options.host_cache_bytes = defaults.host_cache_bytes;
  return options;
}

thalweg_request thalweg_default_request(void) {
  const thalweg::Request defaults;
  thalweg_request request{};
  request.temperature = defaults.temperature;
  request.top_p = defaults.top_p;
  request.n = defaults.n;
  return request;
}

thalweg_engine* thalweg_open(const thalweg_options* from, char* error, size_t error_size) {
  try {
    thalweg::Options options;
    options.model = text_of(from->model);
    options.threads = from->threads;
    options.replay = from->replay != 0;
    if (from->speculate != nullptr) options.speculate = from->speculate;
    options.sequences = from->sequences;
    options.batch_tokens = from->batch_tokens;
    options.context = from->context;
    options.cache_tokens = from->cache_tokens;
    options.host_cache_bytes = from->host_cache_bytes;
    options.disk_cache = text_of(from->disk_cache);
    return new thalweg_engine{thalweg::Engine(options)};
  } catch (const std::exception& problem) {
    tell(problem, error, error_size);
    return nullptr;
  }
}

void thalweg_close(thalweg_engine* engine) {
  delete engine;
}

uint64_t thalweg_submit(thalweg_engine* engine, const thalweg_request* request, thalweg_callback callback,
                        void* user, char* error, size_t error_size) {
  try {
    return engine->engine.submit(request_of(*request), [callback, user](const thalweg::Event& from) {
      thalweg_event event{};
      event.request = from.request;
      event.choice = from.choice;
      event.token = from.token.value_or(-1);
      event.text = from.text.c_str();
      event.text_size = from.text.size();
      event.finish = finish_of(from.finish);
      event.error = from.error.c_str();
      event.prompt_tokens = from.prompt_tokens;
      event.reused_tokens = from.reused_tokens;
      event.output_tokens = from.output_tokens;
      callback(&event, user);
    });
  } catch (const std::exception& problem) {
    tell(problem, error, error_size);
    return 0;
  }
}

void thalweg_cancel(thalweg_engine* engine, uint64_t request) {
  engine->engine.cancel(request);
}
void thalweg_drain(thalweg_engine* engine) {
  engine->engine.drain();
}

void thalweg_get_statistics(const thalweg_engine* engine, thalweg_statistics* out) {
  const thalweg::Statistics s = engine->engine.statistics();
  *out = {s.admitted,      s.waiting,       s.running,       s.finished, s.aborted,
          s.prompt_tokens, s.reused_tokens, s.output_tokens, s.steps,    s.device_seconds};
}

}  // extern "C"
