// main.cpp: mutants of whole files of states, made by their numbers.
//
//     fuzz_safetensors [--mutants N] [--first NUMBER]    makes these; if a promise breaks, prints the last mutant
//     fuzz_safetensors --files FOLDER                    writes the whole files, for a fuzzer to begin with
#include "tests/fuzz/safetensors/mutants.h"
#include "tests/fuzz/safetensors/target.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using namespace yoke::fuzz;

std::atomic<uint64_t> at_work;

void tell_number()
{
    const unsigned long long number = at_work;
    fprintf(stderr, "it was mutant %llu: fuzz_safetensors --first %llu --mutants 1\n", number,
            number);
}

void tell_number_of_signal(int)
{
    tell_number();
    _Exit(1);
}

// Reasons for refusals that must occur in 20,000 mutants. Otherwise the mutants are too weak.
constexpr const char *kRules[] = {
    "it has",
    "is cut short (header size",
    "does not begin with '{'",
    "the header is not JSON",
    "is in the header twice",
    "'__metadata__' twice",
    "the metadata has",
    "has the key",
    "has no dtype",
    "has no shape",
    "has no data_offsets",
    "which the format does not have",
    "where a string belongs",
    "where an object of strings belongs",
    "where an object with dtype",
    "where the name of a dtype belongs",
    "where an array belongs",
    "where a whole number",
    "a negative number where",
    "a larger number where",
    "more elements than can be counted",
    "more elements than memory can address",
    "does not end with a whole byte",
    "does not begin where the previous tensor ends",
    "ends before it begins",
    "by shape and dtype",
    "the tensors take",
    "a dtype that Yoke does not have",
    "axes; a tensor of Yoke has at most",
    "the tree is not JSON",
    "the tree has format",
    "the tree has a tensor",
    "more than 64 deep",
    "too many nested lists and dicts",
    "' beside '",
    "in a dict",
    "a '$dict' without pairs",
    "a key that is",
    "beyond 64 bits",
    "the float '",
};

int run(uint64_t first, uint64_t count)
{
    std::map<std::string, uint64_t> refusals;
    uint64_t loaded = 0;
    const auto &files = whole_files();
    for (at_work = first; at_work < first + count; ++at_work) {
        Draw draw(at_work);
        const std::string why = try_file(mutant_of(files[draw.below(files.size())], draw));
        if (why.empty()) ++loaded;
        for (const char *rule : kRules)
            if (why.find(rule) != std::string::npos) ++refusals[rule];
    }
    printf("%llu mutants: %llu load\n", static_cast<unsigned long long>(count),
           static_cast<unsigned long long>(loaded));
    if (count < 20'000) return 0;
    int missed = loaded * 20 < count;
    for (const char *rule : kRules) {
        if (refusals[rule]) continue;
        printf("no mutant was refused with \"%s\"\n", rule);
        ++missed;
    }
    return missed ? 1 : 0;
}

int write_files(const std::string &folder)
{
    size_t number = 0;
    for (const std::string &file : whole_files()) {
        std::ofstream to(folder + "/" + std::to_string(number++), std::ios::binary);
        to.write(file.data(), static_cast<std::streamsize>(file.size()));
        if (!to.flush()) return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char **argv)
{
    uint64_t first = 0, count = 20'000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--files")) return write_files(argv[i + 1]);
        (strcmp(argv[i], "--first") ? count : first) = strtoull(argv[i + 1], nullptr, 10);
    }
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(tell_number);
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
        if (number == SIGABRT || !__sanitizer_set_death_callback)
            signal(number, tell_number_of_signal);
    for (const std::string &file : whole_files()) {
        const std::string why = try_file(file);
        // The file with a dtype that Yoke does not support is whole, too.
        if (!why.empty() && why.find("a dtype that Yoke does not have") == std::string::npos) {
            fprintf(stderr, "a whole file is refused: %s\n", why.c_str());
            return 1;
        }
    }
    return run(first, count);
}
