#include "core/store/store_connection.h"

#include "core/base/error.h"
#include "core/store/store_server.h"

namespace yoke {

namespace {

using wire::Kind;

constexpr size_t kLongestRequest = Store::kLongestValue + Store::kLongestKey + 64;
constexpr size_t kBytesPerKey = 64;  // memory, besides the key's text

double seconds_since(Deadline::Clock::time_point then)
{
    return std::chrono::duration<double>(Deadline::Clock::now() - then).count();
}

// Returns a deadline that has passed already. The store is in memory, so calls without a wait need no time.
Deadline at_once()
{
    return Deadline::after(0);
}

}  // namespace

Connection::Connection(StoreServer &server, Socket socket)
    : server_(server),
      table_(server.table()),
      channel_(std::move(socket)),
      address_(channel_.socket().remote().text()),
      reached_at_(channel_.socket().local().host())
{
    channel_.socket().set_no_delay();
}

double Connection::age_s() const
{
    return seconds_since(since_);
}

void Connection::send(std::string frame)
{
    if (!channel_.send(std::move(frame))) is_overrun_.store(true);
}

void Connection::stop() noexcept
{
    channel_.stop();
    for (const auto &[request, call] : waiting_.take_all())
        table_->forget(call.awaited(), call.waiter);
}

void Connection::on_ready(uint32_t events) noexcept
{
    if (events & EPOLLOUT) channel_.flush();
    if (!(events & ~static_cast<uint32_t>(EPOLLOUT))) return;
    const size_t longest = rank_ == kStranger ? wire::kLongestHello : kLongestRequest;
    std::string why;
    try {
        if (channel_.receive(
                longest, [&](wire::Reader &frame) { return take(frame); }, why))
            return;
    } catch (const std::exception &error) {
        why = error.what();
    }
    server_.end(*this, has_left_ ? PeerEvent::kLeft : PeerEvent::kEnded,
                why.empty() ? fault_ : why);
}

bool Connection::take(wire::Reader &frame)
{
    return rank_ == kStranger ? greet(frame) : serve(frame);
}

bool Connection::refuse(Kind kind, const std::string &why)
{
    answer(std::move(wire::Writer(kind).text(why)));
    fault_ = kind == Kind::kOtherJob   ? "the peer belongs to another job"
             : kind == Kind::kComplete ? "all ranks have arrived"
             : kind == Kind::kFormer   ? "the peer has already joined this job"
                                       : "the peer was refused as a rank";
    return false;
}

// Refuses a rank that comes after all ranks are there. A rank that has left its groups may come back before rank 0
// has released its own groups. Such a rank gets kFormer and comes again.
bool Connection::refuse_late(const std::string &about)
{
    is_former_ = server_.has_met(about);
    return is_former_ ? refuse(Kind::kFormer, server_.options().about)
                      : refuse(Kind::kComplete,
                               server_.options().about + ", whose ranks have all arrived");
}

// Refuses a rank of another start of the job. If the rank's start is newer, also reports kRefused, so this older
// start ends. The launcher starts the older start again, until all ranks have the same start number.
bool Connection::refuse_start(int64_t start, int32_t rank, const std::string &about)
{
    const PeerOptions &self = server_.options();
    const auto describe = [](int32_t number, const std::string &process, int64_t of) {
        return format("rank %d (%s) belongs to start %lld of the job", number, process.c_str(),
                      static_cast<long long>(of));
    };
    const bool is_older = start < self.start;
    const std::string newcomer = describe(rank, about, start);
    const std::string own = describe(self.rank, self.about, self.start);
    const std::string why =
        format("%s, but %s; the older process ends, and its launcher must start it again",
               newcomer.c_str(), own.c_str());
    if (is_older) return refuse(Kind::kRefused, why);
    server_.tell(PeerEvent::kRefused, rank, about, why);
    return refuse(Kind::kOtherJob, self.about + ", of an older start of this job, which ends");
}

bool Connection::greet(wire::Reader &frame)
{
    if (frame.kind() != Kind::kHello || frame.request() != wire::kMagic) return false;
    const int64_t version = frame.number(), rank = frame.number();
    const std::string cookie = frame.text(), about = frame.text();
    if (version != wire::kVersion)
        return refuse(
            Kind::kRefused,
            format(
                "%s uses version %u of the store's protocol, but this rank uses version %lld; give all ranks the same build of Yoke",
                server_.options().about.c_str(), wire::kVersion, static_cast<long long>(version)));
    const int64_t start = frame.number();
    if (!frame.is_whole() || rank < 0 || rank > INT32_MAX) return false;
    if (cookie != server_.options().cookie) return refuse(Kind::kOtherJob, server_.options().about);
    if (start != server_.options().start)
        return refuse_start(start, static_cast<int32_t>(rank), about);
    if (server_.is_complete()) return refuse_late(about);
    const std::string why = server_.admit(*this, static_cast<int32_t>(rank), about);
    if (!why.empty()) return refuse(Kind::kRefused, why);
    answer(wire::Writer(Kind::kWelcome));
    return true;
}

bool Connection::serve(wire::Reader &frame)
{
    if (frame.kind() == Kind::kBye) {
        has_left_ = true;
        fault_ = frame.is_at_end() ? "" : frame.text();
        return false;
    }
    if (frame.kind() == Kind::kPing)
        answer(wire::Writer(Kind::kPong));
    else if (frame.kind() == Kind::kCancel)
        cancel(frame.request());
    else
        try {
            run(frame);
        } catch (const Error &error) {
            fail_request(frame.request(), error.status(), error.what());
        } catch (const std::exception &error) {
            fail_request(frame.request(), YOKE_E_OOM, error.what());
        }
    return frame.is_whole();
}

void Connection::fail_request(uint64_t request, yoke_status status, const char *why)
{
    answer(std::move(wire::Writer(Kind::kFailed, request).number(status).text(why)));
}

WaitingCalls::Call Connection::read_keys(wire::Reader &frame, std::string first)
{
    WaitingCalls::Call call;
    call.keys.push_back(std::move(first));
    while (frame.is_whole() && !frame.is_at_end()) {
        if (call.keys.size() == Store::kMostKeys)
            fail(YOKE_E_VALUE, "store.wait: a request must have at most %zu keys",
                 Store::kMostKeys);
        call.keys.push_back(frame.text());
    }
    for (const std::string &key : call.keys) call.bytes += key.size() + kBytesPerKey;
    return call;
}

void Connection::run(wire::Reader &frame)
{
    const std::string key = frame.text();
    const bool is_call = frame.kind() == Kind::kGet || frame.kind() == Kind::kWait;
    if (is_call || frame.kind() == Kind::kWhenSet) {
        WaitingCalls::Call call = read_keys(frame, key);
        call.is_waited_for = is_call;
        call.wants_values = frame.kind() != Kind::kWait;
        if (frame.is_whole()) park(frame.request(), std::move(call));
    } else if (frame.kind() == Kind::kTryGet) {
        const auto value = table_->try_get(key, at_once());
        answer(value ? std::move(wire::Writer(Kind::kAnswer, frame.request()).text(*value))
                     : wire::Writer(Kind::kNothing, frame.request()));
    } else {
        change(frame, key);
    }
}

void Connection::change(wire::Reader &frame, const std::string &key)
{
    HashStore &table = *table_;
    const bool has_number = frame.kind() == Kind::kAdd;
    const int64_t delta = has_number ? frame.number() : 0;
    const bool has_value = frame.kind() == Kind::kSet || frame.kind() == Kind::kSetOnce;
    std::string text = has_value ? frame.text() : "";
    if (!frame.is_whole()) return;
    switch (frame.kind()) {
        case Kind::kSet:
            table.set(key, text, at_once());
            break;
        case Kind::kSetOnce:
            text = table.set_once(key, text, at_once());
            break;
        case Kind::kAdd:
            text = std::to_string(table.add(key, delta, at_once()));
            break;
        case Kind::kRemove:
            table.remove_all(read_keys(frame, key).keys, at_once());
            break;
        default:
            fail(YOKE_E_COMM, "the store has no request of kind %d",
                 static_cast<int>(frame.kind()));
    }
    // For kSet, the client knows the value.
    answer(std::move(
        wire::Writer(Kind::kAnswer, frame.request()).text(frame.kind() == Kind::kSet ? "" : text)));
}

void Connection::park(uint64_t request, WaitingCalls::Call call)
{
    waiting_.add(request, std::move(call));
    go_on(request);
}

// Answers the request if all its keys are there, else waits for the first missing key. The store calls this function
// again in the thread that sets the key.
void Connection::go_on(uint64_t request)
{
    std::string awaited;
    if (const auto call = waiting_.take_if_complete(request, *table_, &awaited))
        answer_values(request, *call);
    else if (!awaited.empty())
        wait_for(request, awaited);
}

void Connection::wait_for(uint64_t request, const std::string &key)
{
    const std::weak_ptr<Connection> self = weak_from_this();
    const auto go_on = [=](const std::string &) {
        if (const auto connection = self.lock()) connection->go_on(request);
    };
    if (const uint64_t waiter = table_->when_set(key, go_on).value_or(0))
        waiting_.note_waiter(request, key, waiter);
}

// Returns the frame with the values of the request's keys, if the request wants values. Raises YOKE_E_VALUE if the
// values together exceed the channel's queue: a key may be asked for many times.
std::string Connection::values_of(uint64_t request, const WaitingCalls::Call &call) const
{
    constexpr size_t kMost = Channel::kMostQueued - 4096;
    wire::Writer writer(Kind::kAnswer, request);
    size_t bytes = 0;
    for (size_t i = 0; call.wants_values && i < call.keys.size(); ++i) {
        const std::string value = table_->try_get(call.keys[i], at_once()).value_or("");
        bytes += value.size() + sizeof(uint32_t);
        if (bytes > kMost)
            fail(
                YOKE_E_VALUE,
                "store.get: the values of %zu keys together have more than %zu bytes; ask for fewer keys at once",
                call.keys.size(), kMost);
        writer.text(value);
    }
    return std::move(writer).take();
}

// Sends the values, or the error of the answer, in the thread that has set the last key. This thread must not see the
// error. If memory is missing, marks the connection, and the server drops it.
void Connection::answer_values(uint64_t request, const WaitingCalls::Call &call)
{
    try {
        send(values_of(request, call));
    } catch (const Error &error) {
        fail_request(request, error.status(), error.what());
    } catch (const std::exception &) {  // no memory; nor for an answer
        is_overrun_.store(true);
    }
}

void Connection::cancel(uint64_t request)
{
    const std::optional<WaitingCalls::Call> call = waiting_.take(request);
    if (!call) return;  // the answer is on its way
    table_->forget(call->awaited(), call->waiter);
    const Store::Keys missing = table_->missing(call->keys);
    if (missing.empty()) return answer_values(request, *call);
    wire::Writer writer(Kind::kMissing, request);
    for (const std::string &key : missing) writer.text(key);
    answer(std::move(writer));
}

}  // namespace yoke
