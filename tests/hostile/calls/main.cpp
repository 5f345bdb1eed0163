// random_calls: calls every function of the C API with arguments drawn at random, in child processes.
//
//     random_calls [--calls N] [--seed S] [--batch N] [--jobs N] [--threads N] [--stack BYTES] [--memory MIB]
//                  [--no-new-threads] [--freed] [--patience SECONDS] [--only NUMBER,…] [--plant FUNCTION]
//
// Each call must return, with a status known to yoke.h. An error must say what failed and where, and outputs must be
// NULL after a failure. At the end no object may be left. A failure is reported with its seed, and shrunk to the few
// calls that cause the failure.
#include "batch.h"
#include "draw.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

namespace {

using namespace hostile;

[[noreturn]] void usage(const char *what)
{
    std::fprintf(stderr, "random_calls: %s; main.cpp tells the options\n", what);
    std::exit(2);
}

std::vector<int64_t> numbers(const char *list)
{
    std::vector<int64_t> found;
    for (char *end = nullptr; *list; list = *end ? end + 1 : end)
        found.push_back(std::strtoll(list, &end, 10));
    return found;
}

Options read_options(int argc, char **argv)
{
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--freed") {
            options.freed = true;
        } else if (name == "--no-new-threads") {
            options.no_new_threads = true;
        } else {
            if (i + 1 == argc) usage((name + " needs a value, or is no option").c_str());
            const char *text = argv[++i];
            const int64_t value = std::strtoll(text, nullptr, 10);
            if (name == "--calls")
                options.calls = value;
            else if (name == "--seed")
                options.seed = static_cast<uint64_t>(value);
            else if (name == "--batch")
                options.batch = value;
            else if (name == "--jobs")
                options.jobs = static_cast<int>(value);
            else if (name == "--threads")
                options.threads = static_cast<int>(value);
            else if (name == "--stack")
                options.stack = value;
            else if (name == "--memory")
                options.memory = value;
            else if (name == "--patience")
                options.patience = std::strtod(text, nullptr);
            else if (name == "--plant")
                options.plant = text;
            else if (name == "--only")
                options.only = numbers(text);
            else
                usage((name + " is no option").c_str());
        }
    }
    return options;
}

// Prints the calls as C, after a description of the first tensors that occur in the calls.
void print_calls(const std::string &text)
{
    std::set<int> named;
    for (const char *at = text.c_str(); (at = std::strstr(at, "tensor[")); ++at)
        named.insert(std::atoi(at + 7));
    for (int place : named)
        if (place < kPalette)
            std::printf("    /* tensor[%d]: %s */\n", place, World::describe(place).c_str());
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        std::printf("    %s\n", text.substr(at, end - at).c_str());
    }
}

void report(const Options &options, uint64_t seed, const Outcome &outcome)
{
    std::printf("random_calls: seed %llu, call %lld: %s\n", static_cast<unsigned long long>(seed),
                static_cast<long long>(outcome.number), outcome.wrong.c_str());
    std::vector<int64_t> kept = options.only;
    if (kept.empty() && options.threads == 1) kept = shrink(options, seed, outcome);
    if (kept.empty()) {
        std::printf("  it did not happen again\n");
        return;
    }
    std::string text, list;
    (void)run_batch(options, seed, outcome.number + 1, &kept, &text);
    std::printf("  %zu of %lld calls are enough:\n", kept.size(),
                static_cast<long long>(outcome.number + 1));
    print_calls(text);
    for (int64_t number : kept) list += (list.empty() ? "" : ",") + std::to_string(number);
    std::printf("  again: random_calls --seed %llu --only %s\n",
                static_cast<unsigned long long>(seed), list.c_str());
    std::fflush(stdout);
}

// Calls that gave YOKE_OK, of all jobs.
std::atomic<int64_t> *succeeded;

// Runs the batches of a job; returns the number of failures.
int run_batches(const Options &options, int job)
{
    const int64_t batches = (options.calls + options.batch - 1) / options.batch;
    int failed = 0;
    for (int64_t i = job; i < batches && failed < 10; i += options.jobs) {
        const uint64_t seed = options.seed + static_cast<uint64_t>(i);
        const int64_t count = std::min(options.batch, options.calls - i * options.batch);
        const Outcome outcome = run_batch(options, seed, count, nullptr, nullptr);
        *succeeded += outcome.succeeded;
        if (!outcome.failed()) continue;
        ++failed;
        report(options, seed, outcome);
    }
    return failed;
}

// As many processes as there are jobs, each with its share of the batches.
int run_jobs(const Options &options)
{
    if (options.jobs == 1) return run_batches(options, 0);
    std::vector<pid_t> jobs;
    for (int job = 0; job < options.jobs; ++job) {
        const pid_t pid = fork();
        if (pid == 0) {
            const int failed = run_batches(options, job);
            std::fflush(stdout);
            std::_Exit(failed ? 1 : 0);
        }
        jobs.push_back(pid);
    }
    int failed = 0;
    for (pid_t pid : jobs) {
        int status = 0;
        failed += waitpid(pid, &status, 0) != pid || status != 0;
    }
    return failed;
}

// Makes the calls with the requested numbers. Each call is written as C before the call is made.
int run_only(const Options &options)
{
    std::string text;
    const Outcome outcome =
        run_batch(options, options.seed, options.only.back() + 1, &options.only, &text);
    print_calls(text);
    std::printf("%s\n", outcome.failed() ? outcome.wrong.c_str() : "nothing is wrong");
    return outcome.failed();
}

}  // namespace

int main(int argc, char **argv)
{
    const Options options = read_options(argc, argv);
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    make_folder();
    succeeded = static_cast<std::atomic<int64_t> *>(mmap(
        nullptr, sizeof *succeeded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    const auto start = std::chrono::steady_clock::now();
    const int failed = options.only.empty() ? run_jobs(options) : run_only(options);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    remove_folder();
    if (options.only.empty())
        std::printf("%lld calls from seed %llu in %.0f s, %lld of them gave YOKE_OK: %s\n",
                    static_cast<long long>(options.calls),
                    static_cast<unsigned long long>(options.seed), seconds,
                    static_cast<long long>(*succeeded), failed ? "FAILED" : "nothing found");
    return failed ? 1 : 0;
}
