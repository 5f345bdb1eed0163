// yoke run -n N -- CMD ARGS…: ranks of this node, started as processes that yoke.comm.init() finds each other in.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/first_process.h"
#include "bindings/cli/src/handles.h"

#include <charconv>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

namespace yoke::cli {

namespace {

constexpr double kShortestGrace = 0.001, kLongestGrace = 86400;

struct RunOptions {
    std::optional<int32_t> ranks, nodes, node;
    std::optional<std::string> master;
    int32_t restarts = 0;
    double grace = 10;
    std::vector<std::string> command;
};

// Reports a mistake of the command's caller: main prints it and exits with 2.
[[noreturn, gnu::format(printf, 1, 2)]] void misuse(const char *message, ...)
{
    char *text = nullptr;
    va_list values;
    va_start(values, message);
    const int length = vasprintf(&text, message, values);
    va_end(values);
    if (length < 0) throw std::bad_alloc();
    const std::unique_ptr<char, void (*)(void *)> owner(text, free);
    throw std::runtime_error(text);
}

// ---- Variables PET_* of Kubeflow Trainer v2 ---------------------------------------------------------------------

std::string variable(const char *name)
{
    const char *text = getenv(name);
    return text ? text : "";
}

void refuse_two(const char *option, const std::string &given, const char *name,
                const std::string &told)
{
    if (given != told)
        misuse("run: %s is %s, and %s is %s; leave the option out, or unset the variable", option,
               given.c_str(), name, told.c_str());
}

std::optional<int32_t> number_of(std::string_view text)
{
    int32_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

// Returns the option's number, else the variable's, else `otherwise`. Raises if option and variable differ, if the
// variable is no number in the range, and if all are missing.
int32_t settle(const char *option, const std::optional<int32_t> &given, const char *name,
               std::optional<int32_t> otherwise, int32_t least, int32_t most)
{
    const std::string text = variable(name);
    const std::optional<int32_t> told = number_of(text);
    if (given && told) refuse_two(option, std::to_string(*given), name, std::to_string(*told));
    if (given) return *given;
    if (!text.empty() && (!told || *told < least || *told > most))
        misuse("run: %s is '%s'; it takes a number from %d to %d, or give %s", name, text.c_str(),
               least, most, option);
    if (told) return *told;
    if (otherwise) return *otherwise;
    misuse("run: %s is missing; it takes %d to %d", option, least, most);
}

std::string settle_master(const std::optional<std::string> &given)
{
    constexpr const char *kHost = "PET_MASTER_ADDR", *kPort = "PET_MASTER_PORT";
    const std::string host = variable(kHost), port = variable(kPort);
    if (given) {
        const size_t colon = given->rfind(':');
        if (!host.empty()) refuse_two("--master's host", given->substr(0, colon), kHost, host);
        if (!port.empty() && colon != given->npos)
            refuse_two("--master's port", given->substr(colon + 1), kPort, port);
        return *given;
    }
    if (host.empty() != port.empty())
        misuse("run: %s is set, but %s is not; set both, or give --master",
               host.empty() ? kPort : kHost, host.empty() ? kHost : kPort);
    if (host.empty()) return "";
    const bool is_number = host.find(':') != host.npos;
    return (is_number ? "[" + host + "]" : host) + ":" + port;
}

// ---- Running ----------------------------------------------------------------------------------------------------

// Leaves the effect of signals to the ranks: the ranks' end decides how the command ends, so a signal must have no
// other effect afterwards.
void leave_signals_to_ranks()
{
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
        struct sigaction action;
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN) std::signal(signal, [](int) {});
    }
    std::signal(SIGCHLD, SIG_DFL);  // else the end of ranks would stay unknown
}

yoke_run_options settled(const RunOptions &options, const std::string &master)
{
    yoke_run_options all{};
    all.struct_size = sizeof all;
    all.ranks = settle("-n", options.ranks, "PET_NPROC_PER_NODE", std::nullopt, 1, YOKE_MAX_RANKS);
    all.nodes = settle("--nnodes", options.nodes, "PET_NNODES", 1, 1, YOKE_MAX_NODES);
    const std::optional<int32_t> first = all.nodes == 1 ? std::optional(0) : std::nullopt;
    all.node = settle("--node-rank", options.node, "PET_NODE_RANK", first, 0, all.nodes - 1);
    if (all.node >= all.nodes)
        misuse("run: --node-rank is %d, but --nnodes is %d; node ranks count from 0", all.node,
               all.nodes);
    if (all.nodes > 1 && master.empty())
        misuse(
            "run: --nnodes is %d, but --master is missing; give HOST:PORT of the node with rank 0",
            all.nodes);
    all.master = master.empty() ? nullptr : master.c_str();
    all.restarts = options.restarts;
    all.grace = options.grace;
    return all;
}

int run(const RunOptions &options)
{
    if (is_first_process()) return be_first_process();
    const std::string master = settle_master(options.master);
    yoke_run_options all = settled(options, master);
    std::vector<const char *> command;
    for (const std::string &word : options.command) command.push_back(word.c_str());
    command.push_back(nullptr);
    all.command = command.data();
    leave_signals_to_ranks();
    const auto result = get<yoke_run_result>(yoke_run, &all);
    if (*result.text) fprintf(stderr, "yoke: run: %s\n", result.text);
    return result.exit_code;
}

// Adds an option that fills an std::optional only if given.
template <class T>
CLI::Option *add(CLI::App *command, const std::string &name, std::optional<T> &place,
                 const std::string &text)
{
    const auto fill = [&place](const T &value) { place = value; };
    return command->add_option_function<T>(name, fill, text);
}

}  // namespace

void add_run(CLI::App &app, Action &action)
{
    auto options = std::make_shared<RunOptions>();
    CLI::App *command = app.add_subcommand("run", "Start the ranks of a job on this machine");
    command->footer(
        "Example: yoke run -n 4 -- python train.py\n"
        "On two nodes: yoke run -n 4 --nnodes 2 --node-rank 0 --master node7:29500 -- python train.py\n"
        "Each line of a rank begins with its number. PET_NPROC_PER_NODE, PET_NNODES, PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT are defaults.\n"
        "Exit code: of the first failed rank, or 128 + its signal; 2, wrong options; 127 or 126, CMD cannot be run; 74, the output cannot be written.");
    add(command, "-n,--nproc", options->ranks, "Ranks on this machine")
        ->check(CLI::Range(1, YOKE_MAX_RANKS));
    add(command, "--nnodes", options->nodes,
        "Number of machines, each with the same number of ranks (1)")
        ->check(CLI::Range(1, YOKE_MAX_NODES));
    add(command, "--node-rank", options->node, "Number of this machine, counted from 0")
        ->check(CLI::Range(0, YOKE_MAX_NODES - 1));
    add(command, "--master", options->master, "HOST:PORT of rank 0; on one machine a free port")
        ->check(not_empty());
    command
        ->add_option(
            "--restarts", options->restarts,
            "Number of times that all ranks are started again after a failure of a rank (0)")
        ->check(CLI::Range(0, 1000000));
    command
        ->add_option("--grace", options->grace,
                     "Seconds for ranks to exit before they are killed (10)")
        ->check(seconds_between(kShortestGrace, kLongestGrace));
    command->add_option("CMD", options->command, "The program and its arguments, after --")
        ->required();
    command->positionals_at_end();  // options behind the program's name are the program's
    command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace yoke::cli
