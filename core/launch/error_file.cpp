#include "core/launch/error_file.h"

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/log.h"
#include "core/base/text.h"

#ifndef YOKE_WITHOUT_JSON
#include <nlohmann/json.hpp>
#endif

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

namespace yoke {

namespace {

// Returns the text as a JSON string. Bytes beyond ASCII stay as they are.
std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (static_cast<unsigned char>(c) < ' ')
            out += format("\\u%04x", c);
        else
            out += c;
    }
    return out + '"';
}

// Cause published by this process. In a forked child, the values belong to the parent.
struct Told {
    Mutex mutex{LockRank::kOther};
    pid_t teller = 0;
    std::string cause;
    std::string inherited;  // value of the variable at the fork
};
Told &told = immortal<Told>();

std::string file_of_variable()
{
    const char *path = getenv(kErrorFileVariable);
    return path ? path : "";
}

void note_fork()
{
    told.inherited = file_of_variable();
}
[[maybe_unused]] const int is_noted = pthread_atfork(nullptr, nullptr, note_fork);

// Returns the error file of this rank. Returns "" without an error file, and in a forked child with its parent's
// file.
std::string own_file()
{
    const std::string path = file_of_variable();
    const std::lock_guard lock(told.mutex);
    return path == told.inherited ? "" : path;
}

void take_back_at_exit()
{
#ifdef __GLIBC__
    static std::once_flag registered;
    const auto end = [](int code, void *) {
        if ((code & 0xff) == 0) take_back_told();  // the parent sees only these 8 bits
    };
    std::call_once(registered, [&] { (void)on_exit(end, nullptr); });
#endif
}

void note_told(const std::string &cause)
{
    take_back_at_exit();
    const std::lock_guard lock(told.mutex);
    told.teller = getpid();
    told.cause = cause;
}

std::string text_of(const std::string &cause)
{
    return format(R"({"message": {"message": %s, "extraInfo": {"timestamp": "%lld"}}})",
                  quoted(cause).c_str(), static_cast<long long>(time(nullptr)));
}

void write_once(const std::string &path, const std::string &cause)
{
    const OwnedFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const bool is_there_already = !file.is_open() && errno == EEXIST;
    if (is_there_already) return;
    if (file.is_open()) note_told(cause);
    const std::string text = text_of(cause);
    const bool is_written = file.is_open() && write(file.get(), text.data(), text.size()) ==
                                                  static_cast<ssize_t>(text.size());
    if (!is_written)
        log(LogLevel::kWarn, "the cause of this rank's failure could not be written to %s (%s): %s",
            path.c_str(), kErrorFileVariable, strerror(errno));
}

// Returns whether `cause` is the published cause, or no cause was published. An exception has the text of its
// failure, which may be cut. If a group ended with its process, the group's text has the reason.
bool is_what_was_told(const std::string &cause)
{
    constexpr size_t kEnough = 500;
    const std::lock_guard lock(told.mutex);
    return told.cause.find(cause) != std::string::npos ||
           cause.find(told.cause.substr(0, kEnough)) != std::string::npos;
}

}  // namespace

void tell_launcher(const std::string &cause) noexcept
try {
    if (const std::string path = own_file(); !path.empty()) write_once(path, cut(cause));
} catch (const std::exception &failure) {
    log(LogLevel::kWarn, "the cause of this rank's failure could not be reported: %s",
        failure.what());
}

void tell_launcher_of_end(const std::string &cause) noexcept
{
    if (!is_what_was_told(cause)) take_back_told();
    tell_launcher(cause);
}

void take_back_told() noexcept
{
    const char *path = getenv(kErrorFileVariable);
    const std::lock_guard lock(told.mutex);
    if (path && told.teller == getpid()) unlink(path);
    told.teller = 0;
    told.cause.clear();
}

void tell_launcher_of_dumps() noexcept
try {
    std::string path = own_file();
    if (path.empty()) return;
    path += kDumpedSuffix;
    const OwnedFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (file.is_open()) (void)futimens(file.get(), nullptr);
} catch (const std::bad_alloc &) {  // the launcher waits for some seconds, and no longer
}

#ifdef YOKE_WITHOUT_JSON

ToldCause read_error_file(const std::string &path)
{
    return {file_text(path)};
}

#else

ToldCause read_error_file(const std::string &path)
{
    const std::string text = file_text(path);
    const auto root = nlohmann::json::parse(text, nullptr, false);
    if (!root.is_object() || !root.contains("message")) return {text};
    const auto &outer = root["message"];
    if (outer.is_string()) return {outer.get<std::string>()};
    if (!outer.is_object() || !outer.contains("message") || !outer["message"].is_string())
        return {text};
    ToldCause cause{outer["message"].get<std::string>()};
    const auto info = outer.value("extraInfo", nlohmann::json::object());
    if (info.is_object() && info.contains("timestamp") && info["timestamp"].is_string())
        cause.told_s = parsed<double>(info["timestamp"].get<std::string>()).value_or(0);
    return cause;
}

#endif

}  // namespace yoke
