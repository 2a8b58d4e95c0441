#pragma once

#include <server_model/commands.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct lua_State;

namespace latchkey::model {

// Runs the text of scripts as Redis does, by Lua 5.1. One interpreter serves the program; every script is compiled
// once. Which scripts a server knows is the server's affair.
class lua_scripts {
 public:
  lua_scripts();
  ~lua_scripts();
  lua_scripts(lua_scripts const&) = delete;
  lua_scripts& operator=(lua_scripts const&) = delete;

  // Compiles it and answers its SHA-1; empty if it is no Lua, and then `problem` says why.
  std::string const& load(std::string_view text, std::string& problem);
  // `sha` was loaded. With `full`, commands that need memory are refused until the first write.
  reply run(std::string_view sha, words_view keys, words_view arguments, surroundings& at, bool full, bool read_only);
  // How many commands scripts have called so far.
  std::uint64_t calls() const { return calls_; }

 private:
  static int call(lua_State* lua);
  static int pcall(lua_State* lua);
  bool call_command(lua_State* lua);
  bool words_of(lua_State* lua);
  void fill(char const* name, words_view values);
  void push(lua_State* lua, reply const& said);
  reply taken(lua_State* lua, int depth);

  struct compiled {
    std::string sha;
    int reference;
  };

  lua_State* lua_;
  std::unordered_map<std::string, compiled> by_text_;
  std::unordered_map<std::string, int> by_sha_;
  surroundings* at_ = nullptr;
  bool full_ = false;
  bool read_only_ = false;
  bool wrote_ = false;
  std::vector<std::string> words_;
  std::size_t used_ = 0;
  std::uint64_t calls_ = 0;
  std::string const none_;
};

}  // namespace latchkey::model
