// Modules beside the library: files with a single symbol each, loaded at first use.
#include "core/backend/comm.h"
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/library.h"
#include "core/base/log.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <iterator>

namespace yoke {

namespace {

// Symbol of a module, or the reason for its absence.
struct Symbol {
    void *address = nullptr;
    std::string reason;
    bool is_there = false;  // the file is
};

Symbol find_symbol(const std::string &path, const char *symbol, const std::string &if_missing)
{
    struct stat file {};
    if (stat(path.c_str(), &file) != 0) return {nullptr, path + " is not there: " + if_missing};
    const Library library = Library::open(path);
    if (!library.loaded())
        return {nullptr, library.problem() + "; reinstall the module or what it needs", true};
    void *address = library.find(symbol);
    if (!address)
        return {nullptr,
                path + " has no symbol " + symbol +
                    ": the file is not a module of this release; reinstall it",
                true};
    return {address, "", true};
}

// Modules that are an engine of collectives alone.
struct CommEntry {
    const char *name;
    Once once = {};
    CommModule module = {};
    // Set with the table, for the hook that a fork runs in the child.
    std::atomic<const yoke_backend_comm *> opened{nullptr};
};
CommEntry comm_entries[] = {{"mpi"}};

void tell_engines_of_fork()
{
    for (CommEntry &entry : comm_entries)
        if (const yoke_backend_comm *table = entry.opened.load()) table->after_fork();
}

void open(CommEntry &entry)
{
    on_fork_child(tell_engines_of_fork);
    static const char here = 0;
    entry.module = detail::open_comm_module(entry.name, folder_of_code(&here));
    entry.opened.store(entry.module.table);
}

}  // namespace

const CommModule *comm_module_of(std::string_view name)
{
    auto *const found = std::ranges::find_if(
        comm_entries, [&](const CommEntry &each) { return name == each.name; });
    if (found == std::end(comm_entries)) return nullptr;
    mark_process_used();  // before run(): a forked child must not wait for a missing thread
    found->once.run(found->name, [&] { open(*found); });
    return &found->module;
}

namespace detail {

Backend open_module(const char *kind, const std::string &folder)
{
    const std::string path = folder + "/libyoke_" + kind + ".so";
    const Symbol found = find_symbol(
        path, YOKE_BACKEND_SYMBOL,
        std::string("this installation has no ") + kind +
            " module; use the cpu, or build Yoke on a machine with nvcc (docs/building.md)");
    if (!found.address) return {nullptr, found.reason, found.is_there};
    return open_table(kind, reinterpret_cast<yoke_backend_get_fn>(found.address), path);
}

CommModule open_comm_module(const char *name, const std::string &folder)
{
    const std::string path = folder + "/libyoke_" + name + ".so";
    const Symbol found = find_symbol(
        path, YOKE_COMM_SYMBOL,
        std::string("this installation has no ") + name +
            " module, which is built only if its headers are found; use the engine cpu, or build Yoke with it (docs/building.md)");
    if (!found.address) return {nullptr, found.reason};
    const yoke_backend_comm *table = nullptr;
    const auto get = reinterpret_cast<yoke_comm_get_fn>(found.address);
    if (const yoke_status status = get(&host_table(), &table))
        return {nullptr, take_backend_error(status, path.c_str())};
    if (!table) return {nullptr, path + " returned no table; reinstall it"};
    std::string problem = comm_refusal(name, *table, path);
    if (!problem.empty()) return {nullptr, std::move(problem)};
    log(LogLevel::kDebug, "collectives: %s is loaded", path.c_str());
    return {table, ""};
}

}  // namespace detail

}  // namespace yoke
