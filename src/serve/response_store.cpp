#include "serve/response_store.hpp"

#include <iterator>
#include <utility>

namespace thalweg::serve {
namespace {

// Deeper than any request may be: arguments of a call come on top of the list and the item they are in.
constexpr JsonLimits kDepth{.depth = 256};

// Appends the items that `text` is a list of; a text as input is one message of the user.
void append_items(const std::string& text, Json& items) {
  if (text.empty()) return;
  Json parsed = parse_json(text, "stored response", kDepth);
  if (parsed.is_string()) {
    items.push_back({{"type", "message"}, {"role", "user"}, {"content", std::move(parsed)}});
    return;
  }
  for (Json& item : parsed) items.push_back(std::move(item));
}

}  // namespace

std::size_t ResponseStore::Entry::bytes() const {
  return sizeof(Entry) + 2 * id.size() + owner.size() + response.size() +
         turns.size() * sizeof(Turns::value_type);
}

void ResponseStore::add(const std::string& owner, const Json& response, Turns earlier, std::string input,
                        Time now) {
  if (!enabled()) return;
  earlier.push_back(
      std::make_shared<const Turn>(std::move(input), to_text(response.at("output")), turn_bytes_));
  Entry entry{response.at("id").get<std::string>(), owner, now, to_text(response), std::move(earlier)};
  const std::lock_guard lock(mutex_);
  expire(now);
  entry_bytes_ += entry.bytes();
  entries_.push_back(std::move(entry));
  by_id_[entries_.back().id] = std::prev(entries_.end());
  while (!entries_.empty() &&
         (entries_.size() > limits_.count || entry_bytes_ + turn_bytes_->load() > limits_.bytes)) {
    drop(entries_.begin());
  }
}

std::optional<ResponseStore::Turns> ResponseStore::turns(const std::string& owner, const std::string& id,
                                                         Time now) {
  const std::lock_guard lock(mutex_);
  const auto entry = lookup(owner, id, now);
  return entry ? std::optional((*entry)->turns) : std::nullopt;
}

Json ResponseStore::items_of(const Turns& turns) {
  Json items = Json::array();
  for (const auto& turn : turns) {
    append_items(turn->input(), items);
    append_items(turn->output(), items);
  }
  return items;
}

std::optional<std::string> ResponseStore::find(const std::string& owner, const std::string& id, Time now) {
  const std::lock_guard lock(mutex_);
  const auto entry = lookup(owner, id, now);
  return entry ? std::optional((*entry)->response) : std::nullopt;
}

bool ResponseStore::erase(const std::string& owner, const std::string& id, Time now) {
  const std::lock_guard lock(mutex_);
  const auto entry = lookup(owner, id, now);
  if (entry) drop(*entry);
  return entry.has_value();
}

std::size_t ResponseStore::count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return entry_bytes_ + turn_bytes_->load();
}

std::optional<ResponseStore::Entries::iterator> ResponseStore::lookup(const std::string& owner,
                                                                      const std::string& id, Time now) {
  expire(now);
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->owner != owner) return std::nullopt;
  return found->second;
}

void ResponseStore::drop(Entries::iterator entry) {
  entry_bytes_ -= entry->bytes();
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

void ResponseStore::expire(Time now) {
  while (!entries_.empty() && now - entries_.front().added >= limits_.age) drop(entries_.begin());
}

}  // namespace thalweg::serve
