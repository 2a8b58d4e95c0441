#pragma once

#include <codec/reply.hpp>
#include <support/unit/fake_store.hpp>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::test {

using detail::reply;

// What a script may do beside the data. `publish` answers false where the server refuses it.
struct script_world {
  fake_store& store;
  std::function<bool(std::string_view channel, std::string_view payload)> publish;
};

using words_view = std::span<std::string const>;
using script_body = std::function<reply(script_world&, words_view keys, words_view arguments)>;

reply integer(std::int64_t value);
reply error(std::string text);
reply array(std::vector<reply> elements);
reply bulk(std::string text);
reply status(std::string text);
// As RESP.
std::string encoded(reply const& said);

// What the scripts of the reentrant lock do, by their SHA-1: the effect of docs/safety.md section 4, written anew.
std::map<std::string, script_body, std::less<>> const& reentrant_bodies();

}  // namespace latchkey::test
