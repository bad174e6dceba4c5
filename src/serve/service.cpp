#include "serve/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "serve/completions.hpp"
#include "serve/openapi.hpp"
#include "serve/output_constraint.hpp"
#include "serve/page.hpp"
#include "serve/text_endpoints.hpp"
#include "wire/fields.hpp"
#include "wire/responses.hpp"
#include "wire/settings.hpp"

namespace thalweg::serve {
namespace {

constexpr std::size_t kLongestRequestId = 128;

std::string request_id_of(const HttpRequest& request) {
  const std::string& given = request.request_id;
  const bool usable = !given.empty() && given.size() <= kLongestRequestId &&
                      std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return usable ? given : make_id("req_");
}

HttpReply json_reply(const Json& body) {
  HttpReply reply;
  reply.body = to_text(body);
  return reply;
}

// Nothing of the page may come from elsewhere, and nobody may show it inside a page of their own.
HttpReply page_reply() {
  HttpReply reply;
  reply.content_type = "text/html; charset=utf-8";
  reply.headers = {
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
       "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"}};
  reply.body = page();
  return reply;
}

const char* format_field(wire::Api api) {
  switch (api) {
    case wire::Api::responses:
      return "text.format";
    case wire::Api::messages:
      return "output_config.format";
    case wire::Api::chat:
      break;
  }
  return "response_format";
}

engine::SamplingParams sampling_of(const wire::InferenceOptions& options, std::uint32_t max_tokens) {
  engine::SamplingParams params;
  params.temperature = options.temperature;
  params.top_p = options.top_p;
  params.max_tokens = max_tokens;
  params.seed = options.seed;
  params.n = static_cast<std::int32_t>(options.choices);
  if (options.logprobs) params.logprobs = static_cast<std::int32_t>(options.top_logprobs.value_or(0));
  return params;
}

// What is generated is the whole message: the prompt holds no beginning of it.
bool is_whole(const text::ParserStart& start) {
  return !start.starts_in_tool_calls && start.stage != text::ParserStage::answer_continuation &&
         start.stage != text::ParserStage::reasoning_continuation;
}

std::string_view id_prefix(wire::Api api) {
  switch (api) {
    case wire::Api::responses:
      return "resp_";
    case wire::Api::messages:
      return "msg_";
    case wire::Api::chat:
      break;
  }
  return "chatcmpl-";
}

HttpError unknown_response(const std::string& id, const std::string& param = "") {
  return {404, "not_found_error", fmt::format("No response with the id '{}' is kept.", id), param,
          param.empty() ? "not_found_error" : "previous_response_not_found"};
}

std::unique_ptr<Protocol> make_protocol(wire::Api api, AnswerContext context) {
  switch (api) {
    case wire::Api::responses:
      return make_responses_protocol(std::move(context));
    case wire::Api::messages:
      return make_messages_protocol(std::move(context));
    case wire::Api::chat:
      break;
  }
  return make_chat_protocol(std::move(context));
}

}  // namespace

/// One request and what is known of it.
struct Service::Call {
  const HttpRequest& request;
  std::string request_id;
  std::optional<Route> route;
  std::string salt;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  explicit Call(const HttpRequest& from)
      : request(from), request_id(request_id_of(from)), route(find_route(path_of(from.target))) {}

  ErrorShape shape() const { return route ? route->shape : ErrorShape::openai; }
  std::string_view name() const { return route ? route->name : "other"; }
};

Service::Service(ServiceOptions options)
    : options_(std::move(options)),
      log_(options_.request_log),
      memory_(options_.remembered),
      responses_(options_.responses),
      started_(std::time(nullptr)) {}

void Service::loading(const std::string& phase, std::int64_t done, std::int64_t total) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  done_ = done;
  total_ = total;
}

void Service::open(Backend& backend, ModelInfo info) {
  {
    const std::lock_guard lock(mutex_);
    info_ = std::move(info);
  }
  backend_.store(&backend);
}

Backend& Service::backend() {
  Backend* backend = backend_.load();
  if (backend == nullptr) throw unavailable("The model is still loading.");
  return *backend;
}

void Service::finish_headers(const Call& call, HttpHeaders& headers) const {
  headers.emplace_back("x-request-id", call.request_id);
  headers.emplace_back("request-id", call.request_id);
  if (parse_traceparent(call.request.traceparent))
    headers.emplace_back("traceparent", call.request.traceparent);
  if (!options_.cors_origin.empty())
    headers.emplace_back("Access-Control-Allow-Origin", options_.cors_origin);
}

HttpReply Service::refuse(const HttpRequest& request, const HttpError& error) {
  const Call call(request);
  HttpReply reply;
  reply.status = error.status();
  reply.body = to_text(error_body(error, call.shape(), call.request_id));
  if (error.status() == 429 || error.status() == 503) reply.headers.emplace_back("Retry-After", "1");
  if (error.status() == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.status() == 405 && call.route) {
    reply.headers.emplace_back("Allow", call.route->methods());
  }
  finish_headers(call, reply.headers);
  metrics_.count_request(call.name(), error.status());
  if (request.method == "POST") {
    LogEntry entry = log_entry(call);
    entry.status = error.status();
    entry.error = error.what();
    log_.write(entry);
  }
  return reply;
}

LogEntry Service::log_entry(const Call& call) const {
  LogEntry entry;
  entry.id = call.request_id;
  entry.endpoint = call.name();
  entry.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - call.begin).count();
  if (auto trace = parse_traceparent(call.request.traceparent)) {
    entry.trace_id = std::move(trace->trace_id);
    entry.span_id = std::move(trace->span_id);
  }
  return entry;
}

void Service::check_key(Call& call) const {
  if (!options_.keys.required() || call.route->open) return;
  constexpr std::string_view kBearer = "Bearer ";
  const std::string& authorization = call.request.authorization;
  std::string_view key = call.request.api_key;
  if (!authorization.empty()) {
    key = authorization;
    key = key.substr(0, kBearer.size()) == kBearer ? key.substr(kBearer.size()) : std::string_view();
  }
  const auto salt = options_.keys.salt_of(key);
  if (!salt)
    throw HttpError(401, "authentication_error", "Authentication fails: the API key is missing or wrong.");
  call.salt = *salt;
}

// Everything that needs no body.
void Service::check_head(Call& call) {
  const std::string& method = call.request.method;
  if (!call.route) {
    throw not_found(fmt::format("No such path: {}", path_of(call.request.target)));
  }
  if (!call.route->allows(method)) {
    throw HttpError(405, "invalid_request_error",
                    fmt::format("{} is not allowed here, use {}", method, call.route->methods()));
  }
  check_key(call);
  if (call.route->method != "POST") return;
  if (!call.request.encoding.empty() && call.request.encoding != "identity") {
    throw HttpError(415, "invalid_request_error", "Content-Encoding: only identity is supported");
  }
  backend();
  if (draining_.load()) throw unavailable("The service is shutting down.");
}

std::optional<HttpReply> Service::check(const HttpRequest& request) {
  if (request.method == "OPTIONS" && !options_.cors_origin.empty()) return std::nullopt;
  Call call(request);
  try {
    check_head(call);
  } catch (const HttpError& error) {
    return refuse(request, error);
  }
  return std::nullopt;
}

Service::Outcome Service::handle(const HttpRequest& request) {
  Call call(request);
  if (request.method == "OPTIONS" && !options_.cors_origin.empty()) {
    HttpReply reply;
    reply.status = 204;
    reply.headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
                     {"Access-Control-Allow-Headers",
                      "authorization, content-type, x-api-key, anthropic-version, anthropic-beta, "
                      "x-request-id, traceparent"}};
    finish_headers(call, reply.headers);
    return reply;
  }
  try {
    check_head(call);
    Outcome outcome = answer(call);
    if (auto* reply = std::get_if<HttpReply>(&outcome)) {
      finish_headers(call, reply->headers);
      metrics_.count_request(call.name(), reply->status);
      if (request.method == "POST") {
        LogEntry entry = log_entry(call);
        entry.status = reply->status;
        log_.write(entry);
      }
    } else {
      finish_headers(call, std::get<std::unique_ptr<AnswerStream>>(outcome)->headers);
    }
    return outcome;
  } catch (const HttpError& error) {
    return refuse(request, error);
  } catch (const wire::RequestError& error) {
    return refuse(request, from_request_error(error));
  } catch (const InputError& error) {
    return refuse(request, bad_request(error.what(), error.subject()));
  } catch (const std::exception& error) {
    return refuse(request, internal_error(error.what()));
  }
}

Service::Outcome Service::answer(Call& call) {
  switch (call.route->endpoint) {
    case Endpoint::chat:
      return generate(call, wire::Api::chat);
    case Endpoint::responses:
      return generate(call, wire::Api::responses);
    case Endpoint::stored_response:
      return stored_response(call);
    case Endpoint::messages:
      return generate(call, wire::Api::messages);
    case Endpoint::completions:
      return complete(call);
    case Endpoint::count_tokens:
      return count_tokens(call);
    case Endpoint::tokenize:
      return json_reply(serve::tokenize(wire::parse_body(call.request.body), options_.policy, backend()));
    case Endpoint::detokenize:
      return json_reply(serve::detokenize(wire::parse_body(call.request.body), backend()));
    case Endpoint::models:
      return models(std::string(path_of(call.request.target)));
    case Endpoint::ready:
      return ready();
    case Endpoint::metrics:
      return metrics_page();
    case Endpoint::version:
      return version();
    case Endpoint::openapi:
      return json_reply(openapi(options_.version, options_.policy, options_.keys.required()));
    case Endpoint::health:
      return json_reply({{"status", "ok"}});
    case Endpoint::balance:
      return json_reply({{"is_available", true}, {"balance_infos", Json::array()}});
    case Endpoint::page:
      break;
  }
  return page_reply();
}

AnswerHead Service::head(std::string_view prefix, const std::string& model) const {
  const std::lock_guard lock(mutex_);
  return {make_id(prefix), model, "fp_" + info_.digest.substr(0, 16), std::time(nullptr)};
}

Service::Outcome Service::generate(Call& call, wire::Api api) {
  Json body = wire::parse_body(call.request.body);
  ResponseStore::Turns earlier;
  wire::Request request = api == wire::Api::responses ? read_responses(call, body, earlier)
                                                      : wire::read_request(api, body, options_.policy);
  auto constraint = output_constraint(request, backend().specials(), format_field(api));
  ResponseSink keep;
  if (request.store.value_or(false)) keep = keep_response(call.salt, std::move(earlier), body);
  body.erase("input");  // what is echoed of a Responses request is small without it
  AnswerContext context = answer_context(request, head(id_prefix(api), request.model), backend().tokenizer(),
                                         api == wire::Api::responses ? std::move(body) : Json());
  memory_.recall(call.salt, request.conversation);
  engine::Request wanted;
  wanted.prompt = encode_conversation(request.conversation, backend());
  const std::uint32_t max_tokens =
      wire::resolve_max_tokens(request.conversation, request.inference.max_tokens, wanted.prompt.size(),
                               static_cast<std::uint64_t>(backend().context()));
  wanted.sampling = sampling_of(request.inference, max_tokens);
  wanted.parse = request.parsing;
  wanted.constraint = std::move(constraint);
  const bool whole_message = is_whole(request.parsing);
  auto answer = submit(call, make_protocol(api, std::move(context)), request.stream, std::move(wanted),
                       request.ignored_fields);
  answer->keep = std::move(keep);
  if (whole_message) {
    answer->remember = [this, salt = call.salt, thinking = request.conversation.thinking](
                           const text::ParsedMessage& message, const std::vector<std::string>& call_ids,
                           std::vector<text::TokenId> ids) {
      memory_.remember(salt, message, call_ids, {thinking, std::move(ids)});
    };
  }
  return answer;
}

// A response is kept unless the client said otherwise; request.store is settled.
wire::Request Service::read_responses(const Call& call, const Json& body, ResponseStore::Turns& earlier) {
  std::optional<Json> items;
  const auto previous = body.find("previous_response_id");
  if (previous != body.end() && !previous->is_null()) {
    const std::string& id = wire::as_string(*previous, "previous_response_id");
    auto turns = responses_.turns(call.salt, id, std::chrono::steady_clock::now());
    if (!turns) throw unknown_response(id, "previous_response_id");
    earlier = std::move(*turns);
    items = ResponseStore::items_of(earlier);
  }
  wire::Request request = wire::read_responses(body, options_.policy, items ? &*items : nullptr);
  if (request.store.value_or(false) && !responses_.enabled()) request.ignored_fields.emplace_back("store");
  request.store = request.store.value_or(true) && responses_.enabled();
  return request;
}

ResponseSink Service::keep_response(const std::string& owner, ResponseStore::Turns earlier,
                                    const Json& body) {
  const auto given = body.find("input");
  std::string input = given == body.end() || given->is_null() ? std::string() : to_text(*given);
  return [this, owner, earlier = std::move(earlier), input = std::move(input)](const Json& response) mutable {
    responses_.add(owner, response, std::move(earlier), std::move(input), std::chrono::steady_clock::now());
  };
}

HttpReply Service::stored_response(const Call& call) {
  constexpr std::string_view kFolder = "responses/";
  const std::string_view path = path_of(call.request.target);
  const std::string id(path.substr(path.find(kFolder) + kFolder.size()));
  const auto now = std::chrono::steady_clock::now();
  if (call.request.method == "DELETE") {
    if (!responses_.erase(call.salt, id, now)) throw unknown_response(id);
    return json_reply({{"id", id}, {"object", "response"}, {"deleted", true}});
  }
  if (call.request.target.find("stream=true", path.size()) != std::string::npos) {
    wire::rejected("stream: a response that is kept is given whole", "stream");
  }
  auto response = responses_.find(call.salt, id, now);
  if (!response) throw unknown_response(id);
  HttpReply reply;
  reply.body = std::move(*response);
  return reply;
}

Service::Outcome Service::complete(Call& call) {
  CompletionsRequest request =
      read_completions(wire::parse_body(call.request.body), options_.policy, backend());
  AnswerContext context;
  context.head = head("cmpl-", request.model);
  context.stream = request.stream;
  context.include_usage = request.include_usage;
  context.choices = request.request.sampling.n;
  context.logprobs = request.request.sampling.logprobs.has_value();
  context.tokenizer = &backend().tokenizer();
  context.echo = std::move(request.echo);
  return submit(call, make_completions_protocol(std::move(context)), request.stream,
                std::move(request.request), request.ignored_fields);
}

std::unique_ptr<AnswerStream> Service::submit(Call& call, std::unique_ptr<Protocol> protocol, bool streams,
                                              engine::Request request,
                                              const std::vector<std::string>& ignored) {
  if (backend().statistics().waiting >= options_.max_waiting) {
    throw HttpError(429, "rate_limit_error", "Too many requests are waiting. Try again later.");
  }
  request.cache_salt = call.salt;
  Mailbox::Options mailbox;
  mailbox.choices = request.sampling.n;
  mailbox.logprobs = request.sampling.logprobs.has_value();
  mailbox.tools = request.parse && request.parse->parse_tool_calls;
  mailbox.specials = request.parse ? &backend().specials() : nullptr;
  mailbox.limit = options_.max_unread;
  mailbox.remember = request.parse && request.sampling.n == 1;
  LogEntry entry = log_entry(call);
  entry.stream = streams;
  auto answer = std::make_unique<AnswerStream>(std::move(protocol), std::move(request), mailbox, backend(),
                                               metrics_, log_, std::move(entry));
  answer->error_shape = call.shape();
  if (!ignored.empty()) {
    answer->headers.emplace_back("x-ignored-fields", fmt::format("{}", fmt::join(ignored, ", ")));
  }
  return answer;
}

HttpReply Service::count_tokens(const Call& call) {
  const wire::Request request =
      wire::read_request(wire::Api::messages, wire::parse_body(call.request.body), options_.policy);
  return json_reply({{"input_tokens", encode_conversation(request.conversation, backend()).size()}});
}

HttpReply Service::models(const std::string& path) const {
  const auto describe = [&](const std::string& name) {
    const Backend* backend = backend_.load();
    const std::time_t time = started_;
    std::tm utc{};
    ::gmtime_r(&time, &utc);
    char created[32];
    std::strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return Json{{"id", name},
                {"object", "model"},
                {"created", started_},
                {"owned_by", "thalweg"},
                {"context_length", backend == nullptr ? Json() : Json(backend->context())},
                {"type", "model"},
                {"display_name", name},
                {"created_at", created}};
  };
  const auto& names = options_.policy.model_names;
  const std::size_t slash = path.find("models/");
  if (slash != std::string::npos) {
    const std::string name = path.substr(slash + std::string_view("models/").size());
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw not_found(fmt::format("No such model: {}", name));
    }
    return json_reply(describe(name));
  }
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(describe(name));
  return json_reply({{"object", "list"},
                     {"data", std::move(list)},
                     {"has_more", false},
                     {"first_id", names.front()},
                     {"last_id", names.back()}});
}

HttpReply Service::ready() const {
  HttpReply reply;
  const std::lock_guard lock(mutex_);
  if (draining_.load()) {
    reply = json_reply({{"status", "draining"}});
  } else if (backend_.load() == nullptr) {
    reply = json_reply({{"status", "loading"}, {"phase", phase_}, {"done", done_}, {"total", total_}});
  } else {
    return json_reply({{"status", "ready"}});
  }
  reply.status = 503;
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

HttpReply Service::version() const {
  const std::lock_guard lock(mutex_);
  return json_reply({{"version", options_.version},
                     {"model", info_.name},
                     {"digest", info_.digest},
                     {"engine", info_.engine}});
}

HttpReply Service::metrics_page() {
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  Backend* backend = backend_.load();
  metrics_.stored_responses.store(responses_.count());
  metrics_.stored_response_bytes.store(responses_.bytes());
  reply.body = metrics_.write(backend == nullptr ? std::nullopt : std::optional(backend->statistics()));
  return reply;
}

}  // namespace thalweg::serve
