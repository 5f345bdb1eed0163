#include "core/launch/guard.h"

#include "core/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace yoke {

namespace {

// Shell script of the guard. It ignores signals that a terminal sends to all processes. If the launcher ends by
// itself, it sends `done`. Each number in the list has a space on both sides.
constexpr const char *kScript = R"(trap '' HUP INT QUIT TERM TSTP
groups=' '
while read -r line; do
    case $line in
        done) exit ;;
        gone*) gone=" ${line#gone } "; groups="${groups%%"$gone"*} ${groups#*"$gone"}" ;;
        *) groups="$groups$line " ;;
    esac
done
for group in $groups; do kill -KILL -"$group"; done
[ -z "$1" ] || rm -rf -- "$1")";

}  // namespace

Guard::Guard(const std::string &folder)
{
    Pipe pipe = make_pipe();
    const OwnedFile null = open_null();
    ChildPlan plan;
    plan.command = {"/bin/sh", "-c", kScript, "yoke-guard", folder};
    plan.variables = {"PATH=/usr/bin:/bin"};
    plan.in = pipe.read.get();
    plan.out = plan.err = null.get();
    plan.is_guard = true;
    child_ = start_child(plan);
    if (child_.error) {
        log(LogLevel::kWarn,
            "run: /bin/sh cannot be started (%s): if this process is killed, processes that its ranks started may survive",
            strerror(child_.error));
        return;
    }
    pipe_ = Socket::adopt([&] { return fcntl(pipe.write.get(), F_DUPFD_CLOEXEC, 3); });
}

void Guard::say(const char *line) noexcept
{
    if (pipe_.present()) (void)!write(pipe_.fd(), line, strlen(line));
}

void Guard::forget(pid_t group) noexcept
{
    char line[32];
    snprintf(line, sizeof line, "gone %d\n", static_cast<int>(group));
    say(line);
}

Guard::~Guard()
{
    say("done\n");
    pipe_.close();
    if (child_.process > 0) reap(child_.process);
}

}  // namespace yoke
