#include <boost/json.hpp>

#include <base/base64.hpp>
#include <base/token.hpp>

namespace latchkey::tool {
namespace {

namespace json = boost::json;

constexpr std::string_view mark = "lk1.";

std::optional<token> read(json::object const& from) {
  token hold;
  auto const* const name = from.if_contains("name");
  auto const* const kind = from.if_contains("kind");
  auto const* const owner = from.if_contains("owner");
  if (!name || !name->is_string() || !kind || !kind->is_string() || !owner || !owner->is_string()) return {};
  hold.names.emplace_back(name->get_string());
  hold.kind = kind->get_string();
  hold.owner = owner->get_string();
  if (auto const* const also = from.if_contains("also"); also && also->is_array())
    for (auto const& one : also->get_array())
      if (one.is_string()) hold.names.emplace_back(one.get_string());
  if (auto const* const lease = from.if_contains("lease_ms"); lease && lease->is_int64())
    hold.lease_ms = lease->get_int64();
  if (auto const* const fence = from.if_contains("fence"); fence && fence->is_number())
    hold.fence = fence->to_number<std::uint64_t>();
  return hold;
}

}  // namespace

std::string write_token(token const& hold) {
  json::object made{{"name", hold.names.front()}, {"kind", hold.kind}, {"owner", hold.owner}};
  if (hold.names.size() > 1) made["also"] = json::array(hold.names.begin() + 1, hold.names.end());
  if (hold.lease_ms > 0) made["lease_ms"] = hold.lease_ms;
  if (hold.fence) made["fence"] = *hold.fence;
  return std::string(mark) + to_base64url(json::serialize(made));
}

std::optional<token> read_token(std::string_view text) {
  if (!text.starts_with(mark)) return {};
  auto const bytes = from_base64url(text.substr(mark.size()));
  if (!bytes) return {};
  json::parse_options any_bytes;  // names are bytes
  any_bytes.allow_invalid_utf8 = true;
  boost::system::error_code failed;
  auto const value = json::parse(*bytes, failed, {}, any_bytes);
  if (failed || !value.is_object()) return {};
  try {
    return read(value.get_object());
  } catch (boost::system::system_error const&) {  // a fence that is no such number
    return {};
  }
}

}  // namespace latchkey::tool
