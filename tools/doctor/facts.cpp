#include <charconv>
#include <doctor/plan.hpp>

namespace latchkey::tool {

std::optional<std::string> server_facts::info(std::string const& name) {
  if (!all_) all_ = "\n" + asked_.ask_all({{"INFO"}}).front().text;
  auto const key = '\n' + name + ':';
  auto const at = all_->find(key);
  if (at == all_->npos) return {};
  auto const from = at + key.size();
  return all_->substr(from, all_->find_first_of("\r\n", from) - from);
}

std::optional<std::int64_t> server_facts::number(std::string const& name) {
  auto const text = info(name);
  if (!text) return {};
  std::int64_t made = 0;
  auto const* const end = text->data() + text->size();
  auto const read = std::from_chars(text->data(), end, made);
  if (read.ec != std::errc() || read.ptr != end) return {};
  return made;
}

std::optional<std::string> server_facts::setting(std::string const& name) {
  auto const found = asked_.ask_all({{"CONFIG", "GET", name}}).front();
  if (found.what != answer::type::list || found.list.size() != 2) return {};
  return found.list[1].text;
}

}  // namespace latchkey::tool
