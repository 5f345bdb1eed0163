#include "core/launch/run.h"

#include "core/base/entropy.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/launch/file_limit.h"
#include "core/launch/host_port.h"
#include "core/launch/start.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace yoke {

namespace {

void check_range(const char *argument, int32_t value, int32_t least, int32_t most)
{
    if (value < least || value > most)
        fail(YOKE_E_VALUE, "run: argument '%s' is %d; it must be %d to %d", argument, value, least,
             most);
}

void check(const RunOptions &options)
{
    constexpr int32_t kMostRestarts = 1000000;
    check_range("ranks", options.ranks, 1, YOKE_MAX_RANKS);
    check_range("nodes", options.nodes, 1, YOKE_MAX_NODES);
    check_range("node", options.node, 0, options.nodes - 1);
    check_range("restarts", options.restarts, 0, kMostRestarts);
    if (!(options.grace_s >= 0) || std::isinf(options.grace_s))
        fail(YOKE_E_VALUE, "run: argument 'grace' is %g; it must be 0 or more seconds",
             options.grace_s);
    if (options.command.empty() || options.command[0].empty())
        fail(YOKE_E_VALUE, "run: argument 'command' is empty; give a program and its arguments");
    if (options.nodes > 1 && options.master.empty())
        fail(
            YOKE_E_VALUE,
            "run: argument 'nodes' is %d and 'master' is missing; give HOST:PORT of the node with rank 0, the same on all nodes",
            options.nodes);
    if (!options.master.empty() && !parse_host_port(options.master))
        fail(
            YOKE_E_VALUE,
            "run: argument 'master' is '%s'; it must be HOST:PORT, with an IPv6 address in brackets",
            options.master.c_str());
    struct sigaction action;
    sigaction(SIGCHLD, nullptr, &action);
    if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN)
        fail(
            YOKE_E_STATE,
            "run: this process ignores SIGCHLD, so the exit status of a rank would be lost; set SIGCHLD to its default first");
}

// Port held until the run ends. The system gives the port to no other process, yet rank 0 can listen at it. This
// socket does not listen, so SO_REUSEADDR, which servers set, lets both sockets have the port.
class HeldPort {
public:
    HeldPort()
    {
        if (!hold(AF_INET6) && !hold(AF_INET))
            fail(YOKE_E_IO, "run: the system has no free port: %s", strerror(errno));
    }
    uint16_t number() const noexcept { return number_; }

private:
    bool hold(int family)
    {
        OwnedFile made(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int on = 1, off = 0;
        setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        const SocketAddress any = SocketAddress::any(family, 0);
        if (bind(made.get(), any.get(), any.length) != 0) return false;
        SocketAddress bound{};
        bound.length = sizeof bound.storage;
        if (getsockname(made.get(), bound.get(), &bound.length) != 0) return false;
        number_ = bound.port();
        socket_ = std::move(made);
        return true;
    }

    OwnedFile socket_;
    uint16_t number_ = 0;
};

std::string random_id()
{
    return format("%016llx", static_cast<unsigned long long>(unguessable_number()));
}

// Folder that only this user can read; the destructor removes the folder. The path is absolute, because ranks and the
// guard work in other folders.
class PrivateFolder {
public:
    PrivateFolder()
    {
        const char *given = getenv("TMPDIR");
        const std::filesystem::path parent = given && *given ? given : "/tmp";
        std::error_code problem;
        path_ = (std::filesystem::absolute(parent, problem) / "yoke-run-XXXXXX").string();
        if (!mkdtemp(path_.data()))
            fail(YOKE_E_IO,
                 "run: the folder %s cannot be created: %s; set TMPDIR to a writable folder",
                 path_.c_str(), strerror(errno));
    }
    ~PrivateFolder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    PrivateFolder(const PrivateFolder &) = delete;
    PrivateFolder &operator=(const PrivateFolder &) = delete;
    const std::string &path() const noexcept { return path_; }

private:
    std::string path_;
};

// Writes the input text of all ranks to a file in the folder, and returns its path. Returns "" if there is no text.
// Raises YOKE_E_IO if the file cannot be written.
std::string written_input(const std::optional<std::string_view> &input, const std::string &folder)
{
    if (!input) return "";
    const std::string path = folder + "/input";
    const OwnedFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    bool is_well = file.is_open();
    for (std::string_view rest = *input; is_well && !rest.empty();) {
        const ssize_t taken = write(file.get(), rest.data(), rest.size());
        is_well = taken >= 0 || errno == EINTR;
        rest.remove_prefix(static_cast<size_t>(std::max<ssize_t>(taken, 0)));
    }
    if (!is_well)
        fail(YOKE_E_IO, "run: the input of the ranks cannot be written to %s: %s", path.c_str(),
             strerror(errno));
    return path;
}

// Returns the run's name and rank 0's address: `master`, or a free port of this machine, which `held` keeps. Nodes
// derive the job's name from the port, which two jobs cannot have at once.
RunPlace place_of(const RunOptions &options, std::optional<HeldPort> &held)
{
    if (!options.master.empty()) {
        const HostPort master = *parse_host_port(options.master);
        const std::string port = std::to_string(master.port);
        return {options.nodes > 1 ? "at port " + port : random_id(), master.host, port};
    }
    held.emplace();
    return {random_id(), "127.0.0.1", std::to_string(held->number())};
}

// Returns whether both descriptors are the same file. Their lines then go to a single queue, or they would mix.
bool is_one_file(int one, int other)
{
    struct stat a, b;
    return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

}  // namespace

RunResult run_ranks(const RunOptions &options)
{
    check(options);
    TakenSignals signals;
    std::optional<HeldPort> held;
    const RunPlace place = place_of(options, held);
    const PrivateFolder folder;
    const FileLimit files(options.ranks);
    Guard guard(folder.path());
    Terminal terminal;
    LineSink out(STDOUT_FILENO), err(STDERR_FILENO);
    LineSink &second = is_one_file(STDOUT_FILENO, STDERR_FILENO) ? out : err;
    RunScene scene{options,
                   place,
                   folder.path(),
                   written_input(options.input, folder.path()),
                   files.before(),
                   guard,
                   signals,
                   terminal,
                   out,
                   second};
    for (int32_t number = 0;; ++number) {
        Start start(scene, number);
        RunResult result = start.run();
        if (result.rank < 0 || start.was_interrupted() || number == options.restarts) return result;
        log(LogLevel::kWarn, "run: %s; all ranks are started again (%d of %d)", result.text.c_str(),
            number + 1, options.restarts);
    }
}

}  // namespace yoke
