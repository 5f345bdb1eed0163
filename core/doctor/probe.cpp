#include "core/doctor/probe.h"

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/library.h"
#include "core/base/text.h"
#include "core/doctor/checks.h"
#include "core/machine/files.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>

extern char **environ;

namespace yoke::doctor {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostOutput = 64 * 1024;

// Arguments of posix_spawn, released by the destructor.
class Spawn {
public:
    Spawn(int out, int other)
    {
        posix_spawn_file_actions_init(&actions_);
        posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions_, out, 1);
        posix_spawn_file_actions_adddup2(&actions_, out, 2);
        posix_spawn_file_actions_addclose(&actions_, other);
        posix_spawnattr_init(&attributes_);
        // A process group of its own makes all children end with the probe. The signals are reset to the usual state.
        posix_spawnattr_setflags(
            &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        sigset_t none, usual;
        sigemptyset(&none);
        sigemptyset(&usual);
        for (const int each : {SIGALRM, SIGPIPE, SIGINT, SIGTERM}) sigaddset(&usual, each);
        posix_spawnattr_setsigmask(&attributes_, &none);
        posix_spawnattr_setsigdefault(&attributes_, &usual);
    }
    ~Spawn()
    {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    Spawn(const Spawn &) = delete;
    Spawn &operator=(const Spawn &) = delete;

    int start(const std::vector<std::string> &command, pid_t &pid)
    {
        std::vector<const char *> words = c_strings(command);
        words.push_back(nullptr);
        char *const *arguments = const_cast<char *const *>(words.data());
        return posix_spawn(&pid, words[0], &actions_, &attributes_, arguments, environ);
    }

private:
    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
};

// Reads to `output`, and drops bytes after the first 64 KiB. Returns true once the other end has closed, false at the
// deadline.
bool read_until(int from, Clock::time_point end, std::string &output)
{
    char part[4096];
    for (;;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd one{from, POLLIN, 0};
        const int ready = poll(&one, 1, static_cast<int>(std::clamp<long long>(left, 0, 60000)));
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0 && left > 0) continue;
        if (ready <= 0) return false;
        const ssize_t size = read(from, part, sizeof part);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return true;
        if (output.size() < kMostOutput) output.append(part, static_cast<size_t>(size));
    }
}

void take_status(pid_t pid, Clock::time_point end, Outcome &outcome)
{
    // The process may have closed its output and still run.
    for (;;) {
        const pid_t ended = waitpid(pid, &outcome.status, WNOHANG);
        if (ended == pid) return;
        if (ended < 0 && errno != EINTR) {
            outcome.status = -1;
            return;
        }
        if (Clock::now() >= end) break;
        usleep(1000);
    }
    outcome.late = true;
}

std::string why_failed(const Outcome &outcome, double deadline)
{
    if (!outcome.problem.empty()) return outcome.problem;
    if (outcome.late) return format("no answer within %.0f s; the probe was killed", deadline);
    if (outcome.status >= 0 && WIFSIGNALED(outcome.status))
        return format("the probe crashed: %s", strsignal(WTERMSIG(outcome.status)));
    const auto lines = lines_of(outcome.output);
    return lines.empty() ? "the probe failed without a message" : lines.back();
}

constexpr double kNone = ProbeResult::kNone;

// Time limit for all probes of cards and pairs together. A running probe has its own deadline.
constexpr std::chrono::seconds kAllProbes{60};

bool succeeded(const Outcome &outcome)
{
    // If the host program ignores its children, the status is unknown, and the last line decides.
    if (outcome.status < 0) return !outcome.late && trimmed(outcome.output).ends_with("done");
    return !outcome.late && WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0;
}

// Returns the cards visible to CUDA, in the order of CUDA's numbers.
std::vector<int> cuda_order(const Facts &facts)
{
    std::vector<int> cards;
    for (const int i : facts.visible.cards)
        if (card(facts, i).present != 0) cards.push_back(i);
    return cards;
}

std::string written(const Facts &facts)
{
    std::string text;
    for (const auto &[i, probe] : facts.probes) {
        const auto add = [&, at = i](const std::string &key, double value) {
            if (!std::isnan(value)) text += format("%d.%s %.17g\n", at, key.c_str(), value);
        };
        const auto say = [&, at = i](const char *key, const std::string &what) {
            if (!what.empty()) text += format("%d.%s %s\n", at, key, what.c_str());
        };
        add("h2d", probe.host_to_device);
        add("d2h", probe.device_to_host);
        add("h2d_pageable", probe.pageable);
        add("launch", probe.launch);
        for (const auto &[other, rate] : probe.peers) add("peer." + std::to_string(other), rate);
        say("smoke", probe.smoke);
        say("broken", probe.broken);
        say("failed", probe.failed);
        say("untried", probe.untried);
        say("unmeasured", probe.unmeasured);
    }
    return text;
}

// Returns why no probe can run, else "".
std::string why_none(const Facts &facts, const std::vector<int> &cards, const std::string &program)
{
    const std::string platforms = facts.variable("YOKE_PLATFORMS");
    if (program.empty()) return "there is no yoke-probe, neither in YOKE_BIN nor beside libyoke";
    if (!facts.build.present) return "this Yoke was built without its CUDA module";
    if (!platforms.empty() && platforms.find("cuda") == platforms.npos)
        return "YOKE_PLATFORMS is '" + platforms + "', which does not name cuda";
    return cards.empty() ? "CUDA shows no GPU to try" : "";
}

// Runner of probes in sequence, until all together have taken too long.
class Prober {
public:
    Prober(std::string program, std::vector<int> cards, double deadline)
        : program_(std::move(program)), cards_(std::move(cards)), deadline_(deadline)
    {
    }

    ProbeResult try_card(size_t n)
    {
        ProbeResult result;
        if (is_over()) {
            result.untried = over();
            return result;
        }
        const Outcome outcome = run({spec(n)});
        for (const std::string &line : lines_of(outcome.output)) take_line(line, cards_, result);
        const std::string why = succeeded(outcome) ? "" : why_failed(outcome, deadline_);
        const bool ended = outcome.late || (outcome.status >= 0 && WIFSIGNALED(outcome.status));
        if (why.empty()) {
            try_pairs(n, result);
        } else if (!outcome.problem.empty()) {
            result.untried = why;
        } else if (ended) {
            result.broken = why;
        } else if (result.untried.empty()) {
            result.failed = why;
        }
        return result;
    }

private:
    void try_pairs(size_t n, ProbeResult &result)
    {
        for (size_t other = 0; other < cards_.size(); ++other) {
            if (other == n) continue;
            result.peers[cards_[other]] = kNone;
            if (is_over()) {
                result.unmeasured = over();
                continue;
            }
            ProbeResult pair;
            const Outcome outcome = run({spec(n), spec(other)});
            for (const std::string &line : lines_of(outcome.output)) take_line(line, cards_, pair);
            if (succeeded(outcome) && pair.peers.count(cards_[other]))
                result.peers[cards_[other]] = pair.peers[cards_[other]];
            else
                result.unmeasured =
                    pair.untried.empty() ? why_failed(outcome, deadline_) : pair.untried;
        }
    }

    Outcome run(const std::vector<std::string> &devices)
    {
        std::vector<std::string> command{program_, "--deadline",
                                         format("%.0f", std::ceil(deadline_))};
        command.insert(command.end(), devices.begin(), devices.end());
        return run_bounded(command, deadline_);
    }
    bool is_over() const { return Clock::now() - start_ >= kAllProbes; }
    static std::string over()
    {
        return format("the probes before it took %d s", static_cast<int>(kAllProbes.count()));
    }
    static std::string spec(size_t n) { return "cuda:" + std::to_string(n); }

    std::string program_;
    std::vector<int> cards_;
    double deadline_;
    Clock::time_point start_ = Clock::now();
};

}  // namespace

Outcome run_bounded(const std::vector<std::string> &command, double seconds)
{
    Outcome outcome;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        outcome.problem = format("no pipe can be made: %s", strerror(errno));
        return outcome;
    }
    for (int &each : ends) each = above_standard(each);
    pid_t pid = 0;
    const int error = Spawn(ends[1], ends[0]).start(command, pid);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        outcome.problem = command[0] + " cannot be started: " + strerror(error);
        return outcome;
    }
    const auto end =
        Clock::now() + std::chrono::microseconds(static_cast<long long>(seconds * 1e6));
    outcome.late = !read_until(ends[0], end, outcome.output);
    close(ends[0]);
    if (!outcome.late) take_status(pid, end, outcome);
    kill(-pid, SIGKILL);  // also ends the probe's remaining children
    if (outcome.late) {
        // A process that waits in the driver cannot be killed or reaped. It stays until its parent ends.
        outcome.status = -1;
        const auto patience = Clock::now() + std::chrono::milliseconds(200);
        while (waitpid(pid, &outcome.status, WNOHANG) == 0 && Clock::now() < patience) usleep(1000);
    }
    return outcome;
}

std::string probe_program(const Facts &facts)
{
    static const int kHere = 0;
    const std::string own = folder_of_code(&kHere);
    std::vector<std::string> folders{facts.variable("YOKE_BIN")};
    // For a prefix: bin beside lib, which is lib/x86_64-linux-gnu on Debian. For a wheel: the environment's bin, with
    // libyoke in lib/python3.11/site-packages/yoke/lib.
    constexpr int kHighest = 5;
    std::string above = own;
    for (int i = 0; i < kHighest; ++i) folders.push_back((above += "/..") + "/bin");
    folders.push_back(own);
    for (const std::string &folder : folders)
        if (!folder.empty() && access((folder + "/yoke-probe").c_str(), X_OK) == 0)
            return folder + "/yoke-probe";
    return "";
}

bool take_line(const std::string &line, const std::vector<int> &cards, ProbeResult &result)
{
    const size_t blank = line.find(' ');
    if (blank == line.npos) return false;
    const std::string key = line.substr(0, blank), text = line.substr(blank + 1);
    const double value = number_of(text);
    if (key == "h2d")
        result.host_to_device = value;
    else if (key == "d2h")
        result.device_to_host = value;
    else if (key == "h2d_pageable")
        result.pageable = value;
    else if (key == "launch")
        result.launch = value;
    else if (key == "smoke")
        result.smoke = trimmed(text);
    else if (key == "broken")
        result.broken = trimmed(text);
    else if (key == "failed")
        result.failed = trimmed(text);
    else if (key == "untried")
        result.untried = trimmed(text);
    else if (key == "unmeasured")
        result.unmeasured = trimmed(text);
    else if (key.compare(0, 5, "peer.") == 0) {
        const size_t other = static_cast<size_t>(atoi(key.c_str() + 5));
        if (other < cards.size()) result.peers[cards[other]] = value;
    } else {
        return false;
    }
    return true;
}

void run_probes(RecordedRoot &root, Facts &facts, double deadline)
{
    const std::string program = probe_program(facts);
    const std::vector<int> cards = cuda_order(facts);
    facts.no_probes = why_none(facts, cards, program);
    if (!facts.no_probes.empty()) return;
    Prober prober(program, cards, deadline);
    for (size_t n = 0; n < cards.size(); ++n) facts.probes[cards[n]] = prober.try_card(n);
    root.note("/yoke/probes", written(facts));
}

void read_probes(RecordedRoot &root, Facts &facts)
{
    // Numbers of the inventory, where instances of partitioned cards have numbers, too.
    std::vector<int> all(facts.machine.cards.size());
    std::iota(all.begin(), all.end(), 0);
    const auto text = root.text("/yoke/probes");
    facts.no_probes =
        "no probe was run on that machine: " + under_sysroot("/yoke/probes") + " is missing";
    for (const std::string &line : lines_of(text.value_or(""))) {
        const size_t dot = line.find('.');
        const size_t n = static_cast<size_t>(atoi(line.c_str()));
        if (dot == line.npos || n >= all.size()) continue;
        take_line(line.substr(dot + 1), all, facts.probes[all[n]]);
    }
}

}  // namespace yoke::doctor
