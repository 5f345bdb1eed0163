#include "batch.h"

#include "draw.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace hostile {

namespace {

constexpr int64_t kEpisode =
    64;                     // calls after which the first tensors and the modes are as at first
constexpr int kDefect = 3;  // exit status of a child that saw a defect

// Report of the child to its parent, in memory that survives the child.
struct Told {
    std::atomic<int64_t> number;
    std::atomic<int64_t> succeeded;
    char wrong[2048];
};

std::string folder;  // where children work

void write_file(const std::string &name, const std::string &content)
{
    if (FILE *file = std::fopen((folder + "/" + name).c_str(), "wb")) {
        std::fwrite(content.data(), 1, content.size(), file);
        std::fclose(file);
    }
}

const Function &chosen(uint64_t seed, int64_t number, World &world)
{
    Draw dice(world, ~seed, number, "", nullptr);
    for (;;) {
        const Function &function = kFunctions[dice.below(kFunctionCount)];
        if (function.rarity == 1 || dice.one_in(function.rarity)) return function;
    }
}

[[noreturn]] void tell(Told &told, const std::string &wrong)
{
    std::snprintf(told.wrong, sizeof told.wrong, "%s", wrong.c_str());
    _exit(kDefect);
}

void limit_memory(int64_t mebibytes)
{
    if (kSanitized) return;
    long pages = 0;
    if (FILE *file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
        std::fclose(file);
    }
    const rlim_t most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (mebibytes << 20));
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
}

// Makes pthread_create fail from now on. The limit does not bind root, so root becomes another user.
void refuse_threads()
{
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    if (geteuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
        _exit(1);
}

// Computes a product large enough for a team of threads, because the limits concern the team. The product works, or
// the call says why not.
void large_product()
{
    const int64_t shape[] = {256, 256};
    yoke_tensor *x = nullptr, *y = nullptr;
    if (yoke_zeros(shape, 2, YOKE_F32, nullptr, &x) == YOKE_OK) (void)yoke_matmul(x, x, &y);
    yoke_tensor_release(x);
    yoke_tensor_release(y);
}

struct Work {
    const Options &options;
    uint64_t seed;
    int64_t count;
    const std::vector<int64_t> *kept;
    bool tells;
    Told &told;
};

void make_call(World &world, const Work &work, int64_t number)
{
    work.told.number.store(number, std::memory_order_relaxed);
    const Function &function = chosen(work.seed, number, world);
    const bool planted = work.options.plant == function.name;
    std::string text;
    Draw draw(world, work.seed, number, function.name, work.tells ? &text : nullptr);
    try {
        function.call(draw);
        if (planted) std::abort();
    } catch (const NoRoom &) {
        return;
    } catch (const Defect &defect) {
        tell(work.told, std::string(function.name) + " " + defect.what());
    }
}

// Waits until all memory of the program is dropped. Another thread of these calls may still use callbacks, in a log
// line or in a replaced list. They are dropped when that thread is done.
bool all_dropped(const World &world)
{
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (world.borrowed && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return world.borrowed == 0;
}

void make_calls(const Work &work)
{
    World world;
    world.keeps_freed = work.options.freed;
    int64_t begun = -1;
    const auto make = [&](int64_t number) {
        if (const int64_t episode = number / kEpisode; episode != begun) {
            if (work.tells && begun >= 0) {
                std::printf("/* the first %d tensors and all modes as at first */\n", kPalette);
                std::fflush(stdout);
            }
            world.begin_again(work.seed + static_cast<uint64_t>(episode));
            if (work.options.no_new_threads || work.options.stack) large_product();
            begun = episode;
        }
        make_call(world, work, number);
    };
    if (work.kept)
        std::for_each(work.kept->begin(), work.kept->end(), make);
    else
        for (int64_t number = 0; number < work.count; ++number) make(number);
    work.told.number.store(work.count - 1, std::memory_order_relaxed);
    work.told.succeeded += world.succeeded;
    yoke_log_set_callback(nullptr, nullptr, nullptr);
    yoke_set_stack_provider(nullptr, nullptr, nullptr);
    yoke_set_interrupt_hook(nullptr, nullptr, nullptr);
    for (const int64_t id : world.hearers) yoke_log_remove_callback(id);
    yoke_remove_on_out_of_memory(world.callback);
    yoke_remove_garbage_collector(world.collector);
    world.clear();
    yoke_shutdown(100);  // a running save may use some memory
    if (!all_dropped(world))
        tell(work.told,
             "memory of the program was never given back: " + std::to_string(world.borrowed));
}

// Finds leaks of all calls, after the release of their objects.
void look_for_leaks(Told &told)
{
    int64_t bytes = 0;
    if (const int64_t tensors = yoke_live_tensor_count())
        tell(told, std::to_string(tensors) + " tensors are alive after the last was released");
    if (yoke_memory_allocated(nullptr, &bytes) == YOKE_OK && bytes)
        tell(told,
             std::to_string(bytes) + " bytes are allocated after the last tensor was released");
}

void in_threads(const Work &work)
{
    std::vector<pthread_t> threads(static_cast<size_t>(work.options.threads));
    std::vector<Work> works;
    for (size_t i = 0; i < threads.size(); ++i) {
        works.push_back(work);
        works.back().seed += i << 32;
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (work.options.stack)
        pthread_attr_setstacksize(&attributes, static_cast<size_t>(work.options.stack));
    for (size_t i = 0; i < threads.size(); ++i) {
        const auto body = [](void *mine) -> void * {
            make_calls(*static_cast<const Work *>(mine));
            return nullptr;
        };
        if (pthread_create(&threads[i], &attributes, body, &works[i]))
            tell(work.told, "no thread could be made for the calls");
    }
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

[[noreturn]] void child(const Work &work)
{
    if (chdir(folder.c_str())) _exit(1);
    setenv("YOKE_LEASE_DIR", folder.c_str(), 1);
    if (!getenv("YOKE_LOG")) setenv("YOKE_LOG", "error", 1);
    if (work.options.freed) setenv("YOKE_CHECKS", "1", 1);
    {
        World warm;  // code loaded once is loaded before the limits
        warm.begin_again(work.seed);
    }
    if (work.options.memory) limit_memory(work.options.memory);
    if (work.options.no_new_threads) refuse_threads();
    if (work.options.threads > 1 || work.options.stack)
        in_threads(work);
    else
        make_calls(work);
    look_for_leaks(work.told);
    std::exit(0);
}

// Waits for a child. If its calls make no progress for too long, the child is killed.
int wait_for(pid_t pid, const Told &told, double patience, bool &hung)
{
    using Clock = std::chrono::steady_clock;
    int64_t seen = -2;
    auto since = Clock::now();
    for (int status = 0;;) {
        if (waitpid(pid, &status, WNOHANG) == pid) return status;
        if (const int64_t number = told.number; number != seen) {
            seen = number;
            since = Clock::now();
        } else if (std::chrono::duration<double>(Clock::now() - since).count() > patience) {
            hung = true;
            kill(pid, SIGKILL);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(hung ? 50 : 2));
    }
}

std::string what_became(int status, bool hung, const Told &told)
{
    if (hung) return "does not return";
    if (told.wrong[0]) return told.wrong;
    if (WIFSIGNALED(status))
        return std::string("ends the process by ") + strsignal(WTERMSIG(status));
    if (WEXITSTATUS(status))
        return "ends the process with status " + std::to_string(WEXITSTATUS(status));
    return {};
}

}  // namespace

void make_folder()
{
    std::string name = (std::filesystem::temp_directory_path() / "random_calls.XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    folder = name;
    std::filesystem::permissions(folder, std::filesystem::perms::all);
    // Three arrays of the IDX format: a whole array, a cut array, and an array without a dtype.
    const std::string head("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12);
    write_file("numbers.idx", head + "abcdef");
    write_file("cut.idx", head + "abc");
    write_file("damaged.idx", "\x7f\0\x77\x02" + head);
}

void remove_folder()
{
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
}

Outcome run_batch(const Options &options, uint64_t seed, int64_t count,
                  const std::vector<int64_t> *kept, std::string *text)
{
    auto *told = static_cast<Told *>(
        mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (told == MAP_FAILED) std::abort();
    told->number = -1;
    FILE *said = text ? std::tmpfile() : nullptr;
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
        if (said) dup2(fileno(said), STDOUT_FILENO);
        if (kept && !said) dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);  // printed before
        child({options, seed, count, kept, text != nullptr, *told});
    }
    bool hung = false;
    const int status = wait_for(pid, *told, options.patience, hung);
    Outcome outcome{what_became(status, hung, *told), told->number, told->succeeded};
    if (said) {
        char piece[4096];
        std::rewind(said);
        while (const size_t size = std::fread(piece, 1, sizeof piece, said))
            text->append(piece, size);
        std::fclose(said);
    }
    munmap(told, sizeof(Told));
    return outcome;
}

}  // namespace hostile
