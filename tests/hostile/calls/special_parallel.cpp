// special_parallel.cpp: reducers of groups of one rank, and samplers.
#include "special.h"

namespace hostile::special {

// Draws invalid lists and missing names, too; the call refuses both before reading.
void yoke_reducer_create(Draw &d)
{
    static const char *const kCompressions[] = {"fp16", "powersgd:rank=2", "powersgd:rank=0", "",
                                                "x"};
    constexpr int64_t kMost = 2;
    yoke_group *group = d.handle<yoke_group>();
    const auto count = static_cast<int64_t>(d.below(kMost + 1));
    yoke_tensor **params = d.array<yoke_tensor *>(kMost);
    const char **names = d.one_in(8) ? nullptr : d.array<const char *>(kMost);
    for (int64_t i = 0; i < kMost; ++i) {
        params[i] = d.handle<yoke_tensor>();
        if (names) names[i] = d.word(Words::kName);
    }
    yoke_reducer_options *options = d.one_in(2) ? nullptr : d.array<yoke_reducer_options>(1);
    if (options) {
        *options = {};
        options->struct_size = d.one_in(8) ? d.uint32() : static_cast<uint32_t>(sizeof *options);
        options->bucket_mb = d.one_in(4) ? d.real() : 0;
        options->compression =
            d.one_in(2) ? kCompressions[d.below(std::size(kCompressions))] : nullptr;
    }
    yoke_reducer **out = d.out<yoke_reducer>();
    d.announce();
    d.finish(::yoke_reducer_create(group, params, names, count, nullptr, nullptr, 0, options, out));
}

void yoke_sampler_create(Draw &d)
{
    constexpr int32_t kMost = 4;
    double *shares = d.one_in(4) ? d.array<double>(kMost) : nullptr;
    for (int32_t i = 0; shares && i < kMost; ++i) shares[i] = d.one_in(4) ? d.real() : 0.25;
    yoke_sampler_options *options = d.array<yoke_sampler_options>(1);
    *options = {};
    options->struct_size = d.one_in(16) ? d.uint32() : static_cast<uint32_t>(sizeof *options);
    options->world_size = shares ? kMost : static_cast<int32_t>(d.below(9)) - 1;
    options->rank = static_cast<int32_t>(d.below(5)) - 1;
    options->no_shuffle = d.one_in(2);
    options->drop_last = d.one_in(2);
    options->no_pad = d.one_in(2);
    options->count = d.one_in(4) ? -1 : static_cast<int64_t>(d.below(1000));
    options->seed = d.int64();
    options->shares = shares;
    yoke_sampler **out = d.out<yoke_sampler>();
    d.announce();
    d.finish(::yoke_sampler_create(options, out));
}

void yoke_sampler_get_state(Draw &d)
{
    yoke_sampler *sampler = d.handle<yoke_sampler>();
    yoke_sampler_state *state = d.one_in(16) ? nullptr : d.array<yoke_sampler_state>(1);
    if (state)
        *state = {static_cast<uint32_t>(d.one_in(16) ? d.below(sizeof *state) : sizeof *state), 0,
                  0, 0};
    d.announce();
    d.finish(::yoke_sampler_get_state(sampler, state));
}

void yoke_sampler_load(Draw &d)
{
    yoke_sampler *sampler = d.handle<yoke_sampler>();
    yoke_sampler_state *state = d.one_in(16) ? nullptr : d.array<yoke_sampler_state>(1);
    if (state)
        *state = {static_cast<uint32_t>(sizeof *state), 0, static_cast<int64_t>(d.below(5)),
                  static_cast<int64_t>(d.below(1000)) - 1};
    d.announce();
    d.finish(::yoke_sampler_load(sampler, state));
}

}  // namespace hostile::special
