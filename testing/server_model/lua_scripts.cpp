#include <server_model/lua_scripts.hpp>

#include <lua.hpp>
#include <wire/script.hpp>

#include <cstdio>
#include <stdexcept>

namespace latchkey::model {

namespace {

// Where the interpreter keeps the object that runs it.
char const owner_key = 0;

lua_scripts& owner_of(lua_State* lua) {
  lua_pushlightuserdata(lua, const_cast<char*>(&owner_key));
  lua_rawget(lua, LUA_REGISTRYINDEX);
  auto* const made = static_cast<lua_scripts*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return *made;
}

void push_text(lua_State* lua, std::string_view value) { lua_pushlstring(lua, value.data(), value.size()); }

int one_word_table(lua_State* lua, char const* key) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    lua_pushliteral(lua, "wrong number or type of arguments");
    return lua_error(lua);
  }
  lua_newtable(lua);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, key);
  return 1;
}

}  // namespace

lua_scripts::lua_scripts() : lua_(luaL_newstate()) {
  if (!lua_) throw std::bad_alloc();
  luaL_openlibs(lua_);
  lua_pushlightuserdata(lua_, const_cast<char*>(&owner_key));
  lua_pushlightuserdata(lua_, this);
  lua_rawset(lua_, LUA_REGISTRYINDEX);
  lua_newtable(lua_);
  static constexpr luaL_Reg functions[] = {
      {"call", &lua_scripts::call},
      {"pcall", &lua_scripts::pcall},
      {"error_reply", [](lua_State* lua) { return one_word_table(lua, "err"); }},
      {"status_reply", [](lua_State* lua) { return one_word_table(lua, "ok"); }},
  };
  for (auto const& one : functions) {
    lua_pushcfunction(lua_, one.func);
    lua_setfield(lua_, -2, one.name);
  }
  lua_setglobal(lua_, "redis");
}

lua_scripts::~lua_scripts() { lua_close(lua_); }

std::string const& lua_scripts::load(std::string_view text, std::string& problem) {
  std::string kept(text);
  if (auto const found = by_text_.find(kept); found != by_text_.end()) return found->second.sha;
  if (luaL_loadbuffer(lua_, kept.data(), kept.size(), "@user_script") != 0) {
    problem = std::string("ERR Error compiling script (new function): ") + lua_tostring(lua_, -1);
    lua_pop(lua_, 1);
    return none_;
  }
  compiled made{std::string(detail::script(kept).sha()), luaL_ref(lua_, LUA_REGISTRYINDEX)};
  by_sha_[made.sha] = made.reference;
  return by_text_.emplace(std::move(kept), std::move(made)).first->second.sha;
}

reply lua_scripts::run(std::string_view sha, words_view keys, words_view arguments, surroundings& at, bool full,
                       bool read_only) {
  at_ = &at;
  full_ = full;
  read_only_ = read_only;
  wrote_ = false;
  fill("KEYS", keys);
  fill("ARGV", arguments);
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, by_sha_.at(std::string(sha)));
  reply made;
  if (lua_pcall(lua_, 0, 1, 0) == 0) {
    made = taken(lua_, 0);
  } else {
    if (lua_istable(lua_, -1)) lua_getfield(lua_, -1, "err");
    char const* const why = lua_tostring(lua_, -1);
    bool const said = lua_istable(lua_, -2);
    made = error((said ? "" : "ERR ") + std::string(why ? why : "unknown") + " script: " + std::string(sha) +
                 ", on @user_script.");
  }
  lua_settop(lua_, 0);
  return made;
}

void lua_scripts::fill(char const* name, words_view values) {
  lua_createtable(lua_, static_cast<int>(values.size()), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    push_text(lua_, values[i]);
    lua_rawseti(lua_, -2, static_cast<int>(i + 1));
  }
  lua_setglobal(lua_, name);
}

// --- from a script ---

int lua_scripts::pcall(lua_State* lua) {
  owner_of(lua).call_command(lua);
  return 1;
}

// Nothing of C++ may live in this frame: lua_error leaves it by a jump.
int lua_scripts::call(lua_State* lua) {
  if (!owner_of(lua).call_command(lua)) return lua_error(lua);
  return 1;
}

bool lua_scripts::words_of(lua_State* lua) {
  used_ = static_cast<std::size_t>(lua_gettop(lua));
  if (words_.size() < used_) words_.resize(used_);
  for (std::size_t i = 0; i < used_; ++i) {
    int const at = static_cast<int>(i + 1);
    if (lua_type(lua, at) == LUA_TNUMBER) {
      char digits[64];
      int const size = std::snprintf(digits, sizeof digits, "%.17g", lua_tonumber(lua, at));
      words_[i].assign(digits, static_cast<std::size_t>(size));
      continue;
    }
    std::size_t size = 0;
    char const* const value = lua_tolstring(lua, at, &size);
    if (!value) return false;
    words_[i].assign(value, size);
  }
  return true;
}

// Leaves the answer on the stack. False: it is an error.
bool lua_scripts::call_command(lua_State* lua) {
  ++calls_;
  reply said;
  command const* found = nullptr;
  if (lua_gettop(lua) == 0) {
    said = error("ERR Please specify at least one argument for this redis.call() call");
  } else if (!words_of(lua)) {
    said = error("ERR Lua redis lib command arguments must be strings or integers");
  } else if (found = find_command(words_[0]); !found) {
    said = error("ERR Unknown Redis command called from script");
  } else if (!found->takes(used_)) {
    said = error("ERR Wrong number of args calling Redis command from script");
  } else if (!at_->denied.empty() && at_->denied.contains(found->name)) {
    said = error("ERR The user executing the script can't run this command or subcommand");
  } else if (read_only_ && (found->flags & command::writes)) {
    said = error("READONLY You can't write against a read only replica.");
  } else if (full_ && !wrote_ && (found->flags & command::needs_memory)) {
    said = error("OOM command not allowed when used memory > 'maxmemory'.");
  } else {
    wrote_ = wrote_ || (found->flags & command::writes);
    said = found->run(*at_, {words_.data(), used_});
  }
  push(lua, said);
  return !said.is_error();
}

void lua_scripts::push(lua_State* lua, reply const& said) {
  switch (said.kind) {
    case reply::type::nil: lua_pushboolean(lua, 0); return;
    case reply::type::integer: lua_pushnumber(lua, static_cast<lua_Number>(said.integer)); return;
    case reply::type::string: push_text(lua, said.text); return;
    case reply::type::status:
    case reply::type::error:
      lua_createtable(lua, 0, 1);
      push_text(lua, said.text);
      lua_setfield(lua, -2, said.is_error() ? "err" : "ok");
      return;
    case reply::type::array: break;
  }
  lua_createtable(lua, static_cast<int>(said.elements.size()), 0);
  for (std::size_t i = 0; i < said.elements.size(); ++i) {
    push(lua, said.elements[i]);
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
}

// The value on top of the stack, as Redis makes it a reply; it is popped.
reply lua_scripts::taken(lua_State* lua, int depth) {
  reply made;
  switch (lua_type(lua, -1)) {
    case LUA_TSTRING: {
      std::size_t size = 0;
      char const* const value = lua_tolstring(lua, -1, &size);
      made = text({value, size});
      break;
    }
    case LUA_TBOOLEAN:
      if (lua_toboolean(lua, -1)) made = number(1);
      break;
    case LUA_TNUMBER: made = number(static_cast<std::int64_t>(lua_tonumber(lua, -1))); break;
    case LUA_TTABLE:
      for (char const* key : {"err", "ok"}) {
        lua_pushstring(lua, key);
        lua_rawget(lua, -2);
        if (lua_type(lua, -1) == LUA_TSTRING) {
          made = worded(key[0] == 'e' ? reply::type::error : reply::type::status, lua_tostring(lua, -1));
          lua_pop(lua, 2);
          return made;
        }
        lua_pop(lua, 1);
      }
      made = array();
      for (int i = 1; depth < 8; ++i) {
        lua_rawgeti(lua, -1, i);
        if (lua_isnil(lua, -1)) {
          lua_pop(lua, 1);
          break;
        }
        made.elements.push_back(taken(lua, depth + 1));
      }
      break;
    default: break;
  }
  lua_pop(lua, 1);
  return made;
}

}  // namespace latchkey::model
