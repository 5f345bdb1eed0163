// shared_objects: several threads use equal objects at once, of every kind in the C API.
//
//     shared_objects [--pieces N] [--threads N] [--seed S] [--only SCENE,…] [--cards N] [--first S]
//
// All threads play each scene by itself, each thread with `pieces` pieces; then all scenes together. At the end,
// fresh processes make their first calls from several threads at once. A failure is reported with place and seed. The
// thread sanitizer sees possible races; without the sanitizer only results show a defect.
#include "scene.h"

#include <sys/wait.h>
#include <unistd.h>
#include <barrier>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace hostile {

std::atomic<int64_t> wrongs{0}, calls_made{0}, calls_refused{0};

void wrong(const char *file, int line, const char *format, ...)
{
    constexpr int64_t kMostTold = 20;
    if (++wrongs > kMostTold) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    std::printf("%s:%d: %s\n", file, line, text);
}

bool expect_ok(yoke_status status, const char *file, int line)
{
    ++calls_made;
    if (status == YOKE_OK) return true;
    wrong(file, line, "%s gave %s: %s", yoke_last_error()->call, yoke_status_name(status),
          yoke_last_error()->message);
    return false;
}

bool expect_order(yoke_status status, const char *why, const char *file, int line)
{
    if (status == YOKE_E_STATE && (!why || std::strstr(yoke_last_error()->message, why))) {
        ++calls_refused;
        return false;
    }
    return expect_ok(status, file, line);
}

TensorHeld full(int64_t rows, int64_t columns, double value)
{
    const int64_t shape[] = {rows, columns};
    yoke_scalar scalar{YOKE_ARG_FLOAT, 0, {.f = value}};
    DeviceHeld cpu;
    TensorHeld made;
    OK(yoke_device_open("cpu", cpu.out()));
    OK(yoke_full(shape, 2, &scalar, YOKE_F32, cpu, made.out()));
    return made;
}

TensorHeld parameter(int64_t rows, int64_t columns, double value, double gradient)
{
    TensorHeld made = full(rows, columns, value);
    OK(yoke_tensor_set_requires_grad(made, 1));
    if (gradient != 0) OK(yoke_tensor_set_grad(made, full(rows, columns, gradient)));
    return made;
}

std::vector<float> values_of(yoke_tensor *tensor)
{
    std::vector<float> values(static_cast<size_t>(yoke_tensor_numel(tensor)));
    OK(yoke_tensor_copy_to_host(tensor, values.data(), yoke_tensor_nbytes(tensor)));
    return values;
}

float only_value(yoke_tensor *tensor, const char *file, int line)
{
    const std::vector<float> values = values_of(tensor);
    for (const float value : values)
        if (!(value == values[0])) {
            wrong(file, line, "elements are %.9g and %.9g: torn", static_cast<double>(values[0]),
                  static_cast<double>(value));
            break;
        }
    return values.empty() ? 0 : values[0];
}

namespace {

// A sanitizer sees defects in few pieces; other builds need many pieces, and see results only.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int64_t kDailyPieces = 150, kSoakPieces = 4000;
#else
constexpr int64_t kDailyPieces = 1000, kSoakPieces = 40000;
#endif

struct Options {
    int64_t pieces = std::getenv("YOKE_SOAK") ? kSoakPieces : kDailyPieces;
    int64_t threads = 4;
    int64_t seed = 1;
    int64_t cards = -1;  // number of cards in the machine, if known
    int64_t first = -1;  // seed, in a process that makes first calls
    std::string only;
};

struct Part {
    SceneKind kind;
    std::unique_ptr<Scene> scene;
};

// Every thread plays `pieces` of each of these, in an order of its own.
void play(std::vector<Part> &parts, const Options &options)
{
    std::barrier start(options.threads);
    std::vector<std::thread> threads;
    for (int t = 0; t < options.threads; ++t)
        threads.emplace_back([&, t] {
            Dice dice{std::mt19937_64(static_cast<uint64_t>(options.seed * 1000 + t)), t};
            start.arrive_and_wait();
            const int64_t draws = options.pieces * static_cast<int64_t>(parts.size());
            for (int64_t i = 0; i < draws; ++i) {
                Part &part = parts[dice.below(parts.size())];
                if (static_cast<int>(dice.below(100)) < part.kind.share) part.scene->piece(dice);
            }
        });
    for (std::thread &thread : threads) thread.join();
    for (Part &part : parts) part.scene->check();
}

std::vector<SceneKind> kinds_of(const std::string &only)
{
    std::vector<SceneKind> kinds;
    for (const auto list : {step_scenes(), record_scenes(), scope_scenes(), machine_scenes(),
                            setting_scenes(), memory_scenes()})
        for (const SceneKind &kind : list)
            if (only.empty() ||
                ("," + only + ",").find("," + std::string(kind.name) + ",") != std::string::npos)
                kinds.push_back(kind);
    return kinds;
}

void play_all(const std::vector<SceneKind> &kinds, const Options &options)
{
    const int64_t live = yoke_live_tensor_count(), before = wrongs;
    int64_t bytes_before = 0, bytes = 0;
    OK(yoke_memory_allocated(nullptr, &bytes_before));
    {
        std::vector<Part> parts;
        for (const SceneKind &kind : kinds) parts.push_back({kind, kind.make()});
        play(parts, options);
    }
    if (yoke_live_tensor_count() != live)
        wrong(__FILE__, __LINE__, "%lld tensors are left",
              static_cast<long long>(yoke_live_tensor_count() - live));
    OK(yoke_memory_allocated(nullptr, &bytes));
    if (bytes != bytes_before)
        wrong(__FILE__, __LINE__, "%lld bytes are left",
              static_cast<long long>(bytes - bytes_before));
    if (wrongs == before) return;
    std::string names;
    for (const SceneKind &kind : kinds)
        names += (names.empty() ? "" : ",") + std::string(kind.name);
    std::printf("FAILED: shared_objects --only %s --seed %lld --pieces %lld --threads %lld\n",
                names.c_str(), static_cast<long long>(options.seed),
                static_cast<long long>(options.pieces), static_cast<long long>(options.threads));
}

// Compares the number of cards, so that a test of a machine with cards does not pass without cards.
void expect_cards(int64_t cards)
{
    InventoryHeld inventory;
    OK(yoke_inventory_take(inventory.out()));
    TRUE(yoke_inventory_count(inventory) == cards);
}

// Runs first calls in a fresh process, by exec, so the process has made no call before.
void first_calls_elsewhere(const char *self, int64_t seed)
{
    const std::string text = std::to_string(seed);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        execl(self, self, "--first", text.c_str(), static_cast<char *>(nullptr));
        _exit(127);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        wrong(__FILE__, __LINE__, "shared_objects --first %s ended with %d", text.c_str(), status);
}

Options read_options(int argc, char **argv)
{
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--only") {
            options.only = argv[i + 1];
            continue;
        }
        int64_t *place = name == "--pieces"    ? &options.pieces
                         : name == "--threads" ? &options.threads
                         : name == "--seed"    ? &options.seed
                         : name == "--cards"   ? &options.cards
                         : name == "--first"   ? &options.first
                                               : nullptr;
        if (!place) {
            std::fprintf(stderr, "shared_objects: there is no option %s\n", argv[i]);
            std::exit(2);
        }
        *place = std::strtoll(argv[i + 1], nullptr, 10);
    }
    return options;
}

int run(const Options &options)
{
    if (options.first >= 0) {
        first_calls(static_cast<uint64_t>(options.first), static_cast<int>(options.threads));
        return wrongs != 0;
    }
    const std::vector<SceneKind> kinds = kinds_of(options.only);
    if (kinds.empty()) {
        std::fprintf(stderr, "shared_objects: there is no scene %s\n", options.only.c_str());
        return 2;
    }
    if (options.cards >= 0) expect_cards(options.cards);
    for (const SceneKind &kind : kinds) play_all({kind}, options);
    if (kinds.size() > 1) play_all(kinds, options);
    if (options.only.empty()) {
        const int processes = std::getenv("YOKE_SOAK") ? 100 : 6;
        for (int i = 0; i < processes; ++i) first_calls_elsewhere("/proc/self/exe", i);
    }
    std::printf("%zu scenes, %lld threads, seed %lld: %lld calls, %lld refused, %lld wrong\n",
                kinds.size(), static_cast<long long>(options.threads),
                static_cast<long long>(options.seed), static_cast<long long>(calls_made.load()),
                static_cast<long long>(calls_refused.load()),
                static_cast<long long>(wrongs.load()));
    return wrongs != 0;
}

}  // namespace
}  // namespace hostile

int main(int argc, char **argv)
{
    setenv("CUDA_VISIBLE_DEVICES", "", 1);  // "auto" is the CPU, whatever the machine has
    return hostile::run(hostile::read_options(argc, argv));
}
