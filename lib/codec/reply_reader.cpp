#include <codec/reply_builder.hpp>
#include <codec/reply_reader.hpp>
#include <new>
#include <utility>

namespace latchkey::detail {
namespace {

struct hiredis_closer {
  void operator()(redisReader* reader) const { redisReaderFree(reader); }
};

// Lives at one address, to which hiredis keeps a pointer.
struct reading {
  reading() : reader(redisReaderCreateWithFunctions(&building_functions())) {
    if (!reader) throw std::bad_alloc();
    reader->privdata = &builder;
  }

  reply_builder builder;
  std::unique_ptr<redisReader, hiredis_closer> reader;
};

}  // namespace

void reply_reader::closer::operator()(void* reader) const { delete static_cast<reading*>(reader); }

reply_reader::reply_reader() : reader_(new reading) {}
reply_reader::~reply_reader() = default;
reply_reader::reply_reader(reply_reader&&) noexcept = default;
reply_reader& reply_reader::operator=(reply_reader&&) noexcept = default;

void reply_reader::feed(std::string_view bytes) {
  if (bytes.empty() || !problem_.empty()) return;
  auto& reader = *static_cast<reading*>(reader_.get())->reader;
  pending_ += bytes.size();
  // next() reports what goes wrong here.
  redisReaderFeed(&reader, bytes.data(), bytes.size());
}

reply_reader::result reply_reader::next(reply& out) {
  if (!problem_.empty()) return result::malformed;
  auto& [builder, owned] = *static_cast<reading*>(reader_.get());
  auto& reader = *owned;
  void* done = nullptr;
  if (redisReaderGetReply(&reader, &done) != REDIS_OK) {
    problem_ = builder.problem ? builder.problem : reader.errstr;
    if (problem_.empty()) problem_ = "unreadable";
    return result::malformed;
  }
  auto const unread = done ? reader.len - reader.pos : 0;
  if (pending_ - unread > max_bytes) {
    problem_ = "a reply beyond the limit";
    return result::malformed;
  }
  if (done) {
    pending_ = unread;
    std::swap(out, builder.root);
    return result::reply;
  }
  if (char const* problem = nullptr; !unfinished_is_bounded(reader, problem)) {
    problem_ = problem;
    return result::malformed;
  }
  return result::more;
}

}  // namespace latchkey::detail
