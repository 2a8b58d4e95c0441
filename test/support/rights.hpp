#pragma once

#include <support/raw_redis.hpp>

#include <string>
#include <vector>

namespace latchkey::test {

// Makes the user `till`, password `s3cret`, who may use every key, these channels and these commands alone.
void let_till_use(raw_redis& admin, std::vector<std::string> const& channels, std::vector<std::string> const& commands);

}  // namespace latchkey::test
