// special_comm.cpp: groups of a single rank, which waits for no peer, and invalid groups.
#include "special.h"

namespace hostile::special {

void yoke_comm_init(Draw &d)
{
    static const char *const kBackends[] = {"cpu", "gloo", "nccl", "", "CPU"};
    static const char *const kMethods[] = {"tcp://127.0.0.1:0", "tcp://", "file://", "env://",
                                           "http://x"};
    yoke_comm_options *options = d.array<yoke_comm_options>(1);
    *options = {};
    options->struct_size = d.one_in(16) ? static_cast<uint32_t>(d.below(sizeof *options))
                                        : static_cast<uint32_t>(sizeof *options);
    options->has_rank = 1;
    options->rank = d.one_in(4) ? d.int32() : 0;
    options->world_size = d.one_in(4) ? -static_cast<int32_t>(d.below(100)) : 1;
    options->backend = d.one_in(2) ? kBackends[d.below(std::size(kBackends))] : nullptr;
    options->init_method = kMethods[d.below(std::size(kMethods))];
    options->timeout = d.one_in(4) ? d.real() : 0;
    options->init_timeout = 1;
    yoke_group **out = d.out<yoke_group>();
    d.announce();
    d.finish(::yoke_comm_init(options, out));
}

void yoke_comm_init_threads(Draw &d)
{
    const int32_t size = d.one_in(4) ? -static_cast<int32_t>(d.below(1000)) : 1;
    const double timeout = d.one_in(4) ? d.real() : 0;
    d.show("%d, %g", size, timeout);
    yoke_group **out = size == 1 ? d.out<yoke_group>() : nullptr;  // else no place
    d.announce();
    d.finish(::yoke_comm_init_threads(size, timeout, out));
}

// Draws a single device, for which there is a group, or devices that the call refuses.
void yoke_comm_init_devices(Draw &d)
{
    const int32_t count = d.one_in(4) ? -static_cast<int32_t>(d.below(1000)) : d.one_in(4) ? 2 : 1;
    const double timeout = d.one_in(4) ? d.real() : 0;
    yoke_device **devices = d.array<yoke_device *>(2);
    for (int i = 0; i < 2; ++i) devices[i] = d.handle<yoke_device>();
    d.show("%d, %g", count, timeout);
    yoke_group **out = count == 1 ? d.out<yoke_group>() : nullptr;  // else no place
    d.announce();
    d.finish(::yoke_comm_init_devices(devices, count, timeout, out));
}

// Draws programs that end at once, and invalid programs.
void yoke_run(Draw &d)
{
    static const char *const kTrue[] = {"/bin/true", nullptr};
    static const char *const kFalse[] = {"/bin/false", nullptr};
    static const char *const kNone[] = {"/no/such/program", nullptr};
    static const char *const kEmpty[] = {nullptr};
    static const char *const *const kCommands[] = {kTrue, kFalse, kNone, kEmpty, nullptr};
    static const char *const kMasters[] = {"", ":", "x", "[::1]:0", "::1:7", "127.0.0.1:29500"};
    yoke_run_options *options = d.array<yoke_run_options>(1);
    *options = {};
    options->struct_size = d.one_in(16) ? static_cast<uint32_t>(d.below(sizeof *options))
                                        : static_cast<uint32_t>(sizeof *options);
    options->command = kCommands[d.below(std::size(kCommands))];
    options->ranks = d.one_in(2) ? 1 : d.one_in(4) ? 2 : -static_cast<int32_t>(d.below(100));
    options->nodes = d.one_in(4) ? d.int32() : 0;
    options->node = d.one_in(8) ? d.int32() : 0;
    options->master = d.one_in(4) ? kMasters[d.below(std::size(kMasters))] : nullptr;
    options->restarts = static_cast<int32_t>(d.below(3)) - 1;
    options->no_stdin = 1;
    options->input = d.one_in(2) ? "a line\n" : nullptr;
    options->input_bytes = d.one_in(2) ? d.below(8) : 0;
    options->grace = d.one_in(4) ? d.real() : 0;
    yoke_run_result *out = d.one_in(16) ? nullptr : d.array<yoke_run_result>(1);
    if (out) *out = {}, out->struct_size = sizeof *out;
    d.announce();
    d.finish(::yoke_run(options, out));
}

// ---- Reports about a group's calls ----------------------------------------------------------------------------------

void yoke_comm_hang(Draw &d)
{
    const int64_t count = static_cast<int64_t>(d.below(4)) - 1;
    const char **paths = d.one_in(8) ? nullptr : d.array<const char *>(3);
    for (int i = 0; paths && i < 3; ++i) paths[i] = d.word(Words::kPath);
    d.show("%lld", static_cast<long long>(count));
    yoke_state **out = d.out<yoke_state>();
    d.announce();
    d.finish(::yoke_comm_hang(paths, count, out));
}

void yoke_set_stack_provider(Draw &d)
{
    const auto line = [](void *, const char **file, int32_t *number, const char **function) {
        *file = "random.c";
        *function = nullptr;
        *number = 7;
        return int32_t{1};
    };
    const bool some = !d.one_in(4), drops = d.one_in(2);
    d.show("%s, world, %s", some ? "line" : "NULL", drops ? "drop" : "NULL");
    d.announce();
    d.world().borrowed += drops;
    d.finish(
        ::yoke_set_stack_provider(some ? +line : nullptr, &d.world(), drops ? give_back : nullptr));
}

void yoke_set_interrupt_hook(Draw &d)
{
    const auto hear = [](void *) { return int32_t{1}; };
    const bool some = !d.one_in(4), drops = d.one_in(2);
    d.show("%s, world, %s", some ? "hear" : "NULL", drops ? "drop" : "NULL");
    d.announce();
    d.world().borrowed += drops;
    d.finish(
        ::yoke_set_interrupt_hook(some ? +hear : nullptr, &d.world(), drops ? give_back : nullptr));
}

}  // namespace hostile::special
