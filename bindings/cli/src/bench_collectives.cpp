// yoke bench collectives: collectives by size, with the options and columns of nccl-tests.
#include "bindings/cli/src/bench_report.h"
#include "bindings/cli/src/command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

namespace yoke::cli {

namespace {

// ---- Members ----------------------------------------------------------------------------------------------------

BenchMember this_member(const std::string &spec)
{
    BenchMember self{};
    gethostname(self.host, sizeof self.host - 1);
    const Device device = make<Device>(yoke_device_open, spec.c_str());
    snprintf(self.device, sizeof self.device, "%s", yoke_device_spec(device.get()));
    self.process = getpid();
    int64_t all = 0;
    check(yoke_device_memory(device.get(), &self.free, &all));
    return self;
}

std::vector<BenchMember> members_of(yoke_group *group, const std::string &spec)
{
    const BenchMember self = this_member(spec);
    const Device host = make<Device>(yoke_device_open, "cpu");
    std::vector<BenchMember> all(static_cast<size_t>(yoke_group_size(group)));
    const auto bytes = static_cast<int64_t>(sizeof self);
    const int64_t whole = bytes * static_cast<int64_t>(all.size());
    const Tensor mine = make<Tensor>(yoke_empty, &bytes, int64_t{1}, YOKE_U8, host.get());
    const Tensor out = make<Tensor>(yoke_empty, &whole, int64_t{1}, YOKE_U8, host.get());
    check(yoke_tensor_copy_from_host(mine.get(), &self, bytes));
    check(yoke_group_all_gather(group, out.get(), mine.get(), nullptr));
    check(yoke_tensor_copy_to_host(out.get(), all.data(), whole));
    return all;
}

// Mistake of the command's caller; the command exits with 2.
struct Misuse : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::string shown_bytes(double bytes)
{
    char text[48];
    snprintf(text, sizeof text, "%.1f MiB", bytes / 1048576);
    return text;
}

// Raises Misuse if the ranks on a device need more than its free memory. A machine that runs out of memory ends
// programs without a word.
void need_memory(const std::vector<BenchMember> &members, int64_t most)
{
    const double each = 2.0 * static_cast<double>(most);
    for (const BenchMember &one : members) {
        const auto here = std::ranges::count_if(members, [&](const BenchMember &other) {
            return !strcmp(other.host, one.host) && !strcmp(other.device, one.device);
        });
        const double wanted = each * static_cast<double>(here);
        if (wanted > static_cast<double>(one.free))
            throw Misuse("bench collectives: " + std::to_string(here) + " ranks on " + one.host +
                         " need " + shown_bytes(wanted) + " on " + one.device + " for --maxbytes " +
                         std::to_string(most) + ", of which " +
                         shown_bytes(static_cast<double>(one.free)) +
                         " are free; give a smaller --maxbytes");
    }
}

// ---- Running ----------------------------------------------------------------------------------------------------

const CollectiveOp &op_named(const std::string &name)
{
    return *std::ranges::find_if(collective_ops(),
                                 [&](const CollectiveOp &op) { return name == op.name; });
}

// Runs the op with each size, as nccl-tests goes through the sizes, and adds each round to the report. Raises Misuse
// for sendrecv with a single rank.
void run_op(yoke_group *group, const CollectiveOp &op, const CollectivesOptions &options,
            CollectivesReport &report)
{
    if (op.kind == CollectiveOp::kSendRecv && yoke_group_size(group) == 1)
        throw Misuse("bench collectives: sendrecv needs two ranks, but there is one");
    report.begin(op);
    Rounds rounds(group, op, options.rounds, options.most);
    for (int64_t bytes = options.least; bytes <= options.most;
         bytes = options.step ? bytes + options.step : bytes * options.factor)
        report.add(op, rounds.run(bytes));
}

int run_rank(CollectivesOptions options)
{
    yoke_comm_options how{};
    how.struct_size = sizeof how;
    how.timeout = options.timeout;
    if (!options.backend.empty()) how.backend = options.backend.c_str();
    const Group group = make<Group>(yoke_comm_init, &how);
    const bool is_first = yoke_group_rank(group.get()) == 0;
    if (is_first && options.report >= 0) dup2(options.report, STDOUT_FILENO);
    const std::vector<BenchMember> members = members_of(group.get(), options.rounds.device);
    // The device chosen before counts, even if another choice would differ now.
    options.rounds.device = members[static_cast<size_t>(yoke_group_rank(group.get()))].device;
    int status = 2;
    try {
        need_memory(members, options.most);
        CollectivesReport report(options, members, is_first);
        for (const std::string &name : options.ops)
            run_op(group.get(), op_named(name), options, report);
        status = report.end();
    } catch (const Misuse &mistake) {  // raised on all ranks
        if (is_first) fprintf(stderr, "yoke: %s\n", mistake.what());
    }
    fflush(stdout);
    // After a failure the launcher ends the other ranks, so the rank waits until all have reported everything.
    check(yoke_group_barrier(group.get(), nullptr));
    return status;
}

// ---- Starting ranks of one's own --------------------------------------------------------------------------------

// Returns this command's words without --ranks, plus the file where rank 0 prints. The file bypasses the launcher,
// because the launcher would put the rank in front of each line.
std::vector<std::string> command_of_ranks(int report)
{
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) {
        if (word == "--ranks")
            std::getline(file, word, '\0');
        else if (word.rfind("--ranks=", 0) != 0)
            words.push_back(word);
    }
    words.at(0) = "/proc/self/exe";
    words.push_back("--report-fd=" + std::to_string(report));
    return words;
}

int start_ranks(const CollectivesOptions &options)
{
    const int report = fcntl(STDOUT_FILENO, F_DUPFD, STDERR_FILENO + 1);  // inherited by the ranks
    const std::vector<std::string> words = command_of_ranks(report);
    std::vector<const char *> command;
    for (const std::string &word : words) command.push_back(word.c_str());
    command.push_back(nullptr);
    yoke_run_options all{};
    all.struct_size = sizeof all;
    all.ranks = options.ranks;
    all.command = command.data();
    all.no_stdin = 1;
    const auto result = get<yoke_run_result>(yoke_run, &all);
    close(report);
    const bool has_told = result.exit_code == 1 || result.exit_code == 2;
    if (*result.text && !has_told) fprintf(stderr, "yoke: bench collectives: %s\n", result.text);
    return result.exit_code;
}

// Adds words after -c to the operations, and all_reduce if there is no operation.
void settle_ops(CollectivesOptions &options)
{
    for (const std::string &name : options.checked_ops) {
        const auto &all = collective_ops();
        const bool is_known =
            name == "all" ||
            std::ranges::any_of(all, [&](const CollectiveOp &op) { return name == op.name; });
        if (!is_known)
            throw Misuse("bench collectives: --check is '" + name +
                         "'; give a number, 0 for no checks, or no value");
    }
    options.ops.insert(options.ops.end(), options.checked_ops.begin(), options.checked_ops.end());
    if (options.ops.empty()) options.ops.emplace_back("all_reduce");
}

// Chooses where tensors lie: for NCCL on the rank's own card, else in host memory. Raises Misuse for NCCL on the CPU.
void settle_device(CollectivesOptions &options)
{
    RoundOptions &rounds = options.rounds;
    const bool is_nccl = options.backend == "nccl";
    if (rounds.device.empty()) rounds.device = is_nccl ? "auto:kind=cuda,fallback=error" : "cpu";
    if (is_nccl && rounds.device == "cpu")
        throw Misuse(
            "bench collectives: --backend is nccl and --device cpu, but NCCL does not support tensors of the cpu; leave out --device");
    rounds.is_rounded = is_nccl && options.reduction == "avg";
}

int run(CollectivesOptions options)
{
    settle_ops(options);
    if (std::ranges::find(options.ops, "all") != options.ops.end()) {
        options.ops.clear();
        for (const CollectiveOp &op : collective_ops()) options.ops.emplace_back(op.name);
    }
    if (options.least > options.most)
        throw Misuse("bench collectives: --minbytes is " + std::to_string(options.least) +
                     ", more than --maxbytes, " + std::to_string(options.most));
    settle_device(options);
    if (options.ranks) return start_ranks(options);
    check(yoke_dtype_from_name(options.dtype.c_str(), &options.rounds.dtype));
    const auto *reduction = std::ranges::find_if(
        kReductions, [&](const char *name) { return options.reduction == name; });
    options.rounds.reduction = static_cast<int32_t>(reduction - kReductions);
    return run_rank(std::move(options));
}

// ---- Options ----------------------------------------------------------------------------------------------------

// Adds an option that takes a number of bytes, "8", "64K", "1G": powers of 1024.
CLI::Option *add_bytes(CLI::App *command, const std::string &name, int64_t &place,
                       const std::string &text)
{
    return command->add_option(name, place, text)
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 46));
}

// Returns Yoke's name of a dtype with another name in nccl-tests; other names stay.
std::string dtype_of_nccl_tests(const std::string &name)
{
    static constexpr std::pair<std::string_view, const char *> kNames[] = {
        {"half", "float16"},
        {"float", "float32"},
        {"double", "float64"},
        {"f8e4m3", "float8_e4m3"},
        {"f8e5m2", "float8_e5m2"}};
    for (const auto &[theirs, ours] : kNames)
        if (name == theirs) return ours;
    return name;
}

// Adds -c; nccl-tests gives it a number of checks, here -c may also stand alone. A word after it that is not a number
// is an OP.
void add_check(CLI::App *command, CollectivesOptions &options)
{
    const auto take = [&options](const std::vector<std::string> &words) {
        options.rounds.checks = true;
        if (words.empty() || words[0].empty()) return true;
        int32_t count = 0;
        if (CLI::detail::lexical_cast(words[0], count) && count >= 0)
            options.rounds.checks = count > 0;
        else
            options.checked_ops.push_back(words[0]);
        return true;
    };
    command
        ->add_option("-c,--check", take,
                     "Compare results with the expected values; 0: no comparison")
        ->expected(0, 1)
        ->type_name("[COUNT]");
}

// Adds an option of nccl-tests whose value must be 1 here: a rank has one GPU and one thread.
void add_one_alone(CLI::App *command, const std::string &name)
{
    const auto refuse_more = [name](const int32_t &count) {
        if (count != 1)
            throw Misuse("bench collectives: " + name + " is " + std::to_string(count) +
                         ", but each rank has one GPU and one thread here; give --ranks " +
                         std::to_string(count) + " instead");
    };
    command->add_option_function<int32_t>(name, refuse_more, "1, because each rank has one");
}

void add_options(CLI::App *command, CollectivesOptions &options)
{
    std::vector<std::string> names{"all"}, reductions(kReductions, std::end(kReductions));
    for (const CollectiveOp &op : collective_ops()) names.emplace_back(op.name);
    command->add_option("OP", options.ops, "Collectives to measure (all_reduce)")
        ->check(CLI::IsMember(names));
    add_bytes(command, "-b,--minbytes", options.least, "Smallest size in bytes (8)");
    add_bytes(command, "-e,--maxbytes", options.most, "Largest size in bytes (1G)");
    CLI::Option *factor = command->add_option("-f,--stepfactor", options.factor,
                                              "Factor from one size to the next (2)");
    factor->check(CLI::Range(2, 1 << 20));
    add_bytes(command, "-i,--stepbytes", options.step,
              "Bytes from one size to the next, in place of a factor")
        ->excludes(factor);
    command->add_option("-n,--iters", options.rounds.iterations, "Timed calls (20)")
        ->check(CLI::Range(1, 1000000));
    command
        ->add_option("-w,--warmup_iters", options.rounds.warmup, "Calls before the timed calls (5)")
        ->check(CLI::Range(0, 1000000));
    command->add_option("-o,--op", options.reduction, "sum, prod, min, max or avg (sum)")
        ->check(CLI::IsMember(reductions));
    command
        ->add_option("-d,--datatype", options.dtype,
                     "Data type of the elements, by Yoke's name or nccl-tests' (float32)")
        ->transform(dtype_of_nccl_tests);
    command
        ->add_option("-r,--root", options.rounds.root,
                     "Root rank of collectives that have a root (0)")
        ->check(CLI::Range(0, YOKE_MAX_RANKS - 1));
    add_check(command, options);
    add_one_alone(command, "-g,--ngpus");
    add_one_alone(command, "-t,--nthreads");
    command->add_flag("--group-empty", options.rounds.in_group_memory,
                      "Put tensors in memory that other ranks reach without a copy");
    command
        ->add_option(
            "--backend", options.backend,
            "Engine: cpu, nccl or mpi; if it is not given, init chooses. With nccl the tensors are on cards")
        ->check(CLI::IsMember({"cpu", "gloo", "nccl", "mpi"}));
    command->add_option("--device", options.rounds.device,
                        "Device of the tensors (cpu; with --backend nccl the rank's card)");
    command->add_option("-T,--timeout", options.timeout, "Seconds that a call may take (600)")
        ->check(seconds_between(0.001, 86400));
    command->add_option("--ranks", options.ranks, "Number of ranks to start on this machine")
        ->check(CLI::Range(1, YOKE_MAX_RANKS));
    command->add_option("--report-fd", options.report)->group("");  // from --ranks to its ranks
    command->add_flag("--json", options.json, "JSON output for programs, in base units");
}

}  // namespace

void add_bench_collectives(CLI::App &bench, Action &action)
{
    auto options = std::make_shared<CollectivesOptions>();
    CLI::App *command = bench.add_subcommand(
        "collectives",
        "Measure collectives of a group by size, with nccl-tests' options and columns");
    command->footer(
        "Under a launcher: yoke run -n 4 -- yoke bench collectives all_reduce -b 8 -e 1G -f 2 --check\n"
        "By itself: yoke bench collectives all --ranks 2 -e 64M\n"
        "algbw is size over time; busbw is algbw times 2 (n - 1) / n for all_reduce, (n - 1) / n for collectives with parts, else 1. Exit code: 1, a result was wrong.");
    add_options(command, *options);
    command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace yoke::cli
