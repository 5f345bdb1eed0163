#include "core/launch/error_file.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"

#ifndef YOKE_WITHOUT_JSON
#include <nlohmann/json.hpp>
#endif

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace yoke {

namespace {

// As JSON has it. Bytes that are no ASCII stand as they are.
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

std::atomic<pid_t> teller{0};  // who has written the file; a forked child has not

void write_once(const char *path, const std::string &text)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool is_there_already = file < 0 && errno == EEXIST;
    if (is_there_already) return;
    if (file >= 0) teller = getpid();
    const bool is_written =
        file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (!is_written)
        log(LogLevel::kWarn, "why this rank fails could not be written to %s (%s): %s", path,
            kErrorFileVariable, strerror(errno));
    if (file >= 0) close(file);
}

}  // namespace

void tell_launcher(const std::string &cause) noexcept
try {
    const char *path = getenv(kErrorFileVariable);
    if (!path || !*path) return;
    write_once(path, format(R"({"message": {"message": %s, "extraInfo": {"timestamp": "%lld"}}})",
                            quoted(cause).c_str(), static_cast<long long>(time(nullptr))));
} catch (const std::exception &failure) {
    log(LogLevel::kWarn, "why this rank fails could not be told: %s", failure.what());
}

void take_back_told() noexcept
{
    pid_t self = getpid();
    const char *path = getenv(kErrorFileVariable);
    if (path && teller.compare_exchange_strong(self, 0)) unlink(path);
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
    ToldCause told{outer["message"].get<std::string>()};
    const auto info = outer.value("extraInfo", nlohmann::json::object());
    if (info.is_object() && info.contains("timestamp") && info["timestamp"].is_string())
        told.told_s = parsed<double>(info["timestamp"].get<std::string>()).value_or(0);
    return told;
}

#endif

}  // namespace yoke
