#include <support/rights.hpp>

#include <stdexcept>

namespace latchkey::test {

void let_till_use(raw_redis& admin, std::vector<std::string> const& channels,
                  std::vector<std::string> const& commands) {
  std::vector<std::string> words{"ACL", "SETUSER", "till", "on", ">s3cret", "~*", "resetchannels"};
  for (auto const& channel : channels) words.push_back("&" + channel);
  for (auto const& command : commands) words.push_back("+" + command);
  admin.send(words);
  auto const answer = admin.receive();
  if (answer.text != "OK") throw std::runtime_error("ACL SETUSER: " + answer.text);
}

}  // namespace latchkey::test
