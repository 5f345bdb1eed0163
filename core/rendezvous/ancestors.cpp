// The order in which launchers started each other. A process has the variables of all its launchers, so the variables
// alone do not give the order. Each launcher sets a variable of its own. The launcher of this rank is the nearest
// ancestor started without this variable.
#include "core/rendezvous/ancestors.h"

#include "core/base/text.h"
#include "core/rendezvous/environment.h"

#include <unistd.h>

#include <cstdlib>

namespace yoke {

using Variables = std::map<std::string, std::string>;

std::optional<Variables> process_variables(int32_t process)
{
    const std::string all = file_text("/proc/" + std::to_string(process) + "/environ");
    if (all.empty()) return std::nullopt;
    Variables found;
    for (std::string_view text = all; !text.empty();) {
        const std::string_view entry = text.substr(0, text.find('\0'));
        text.remove_prefix(std::min(entry.size() + 1, text.size()));
        const size_t equals = entry.find('=');
        if (equals != entry.npos) found.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    return found;
}

namespace {

// Returns the id of a process's parent, or 0 if unknown. Reads the parent's id, 6, from "7 (name of the program) S 6
// …" in /proc.
pid_t parent_of(pid_t process)
{
    const std::string text = file_text("/proc/" + std::to_string(process) + "/stat");
    constexpr size_t kToParent = 4;  // ") S "
    const size_t end = text.rfind(')');
    if (end == text.npos || text.size() < end + kToParent) return 0;
    const std::string_view rest = std::string_view(text).substr(end + kToParent);
    return parsed<pid_t>(rest.substr(0, rest.find(' '))).value_or(0);
}

bool has(const Variables &all, const std::string &name, const std::string &value)
{
    const auto found = all.find(name);
    return found != all.end() && found->second == value;
}

// Returns an empty map if the task of the Slurm step already started with this variable, else nullopt. Then the
// launcher ran before the step and saw no variables of the step. Slurm's daemon belongs to another user, so its
// variables cannot be read.
std::optional<Variables> before_step(const std::string &name, const std::string &value)
{
    const char *text = getenv("SLURM_TASK_PID");
    const auto task = text ? parsed<pid_t>(text) : std::nullopt;
    const std::optional<Variables> found = task ? process_variables(*task) : std::nullopt;
    return found && has(*found, name, value) ? std::optional(Variables()) : std::nullopt;
}

}  // namespace

std::optional<Variables> process_launcher(const std::string &name, const std::string &value)
{
    for (pid_t process = getppid(); process > 0; process = parent_of(process)) {
        std::optional<Variables> found = process_variables(process);
        if (!found) break;
        if (!has(*found, name, value)) return found;
    }
    return before_step(name, value);
}

}  // namespace yoke
