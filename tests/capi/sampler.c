/* Shares of a data set for each rank, from C. */
#include "check.h"

static int64_t taken(yoke_sampler *sampler, int64_t most)
{
    int64_t count = 0, index = 0;
    while (count < most) {
        OK(yoke_sampler_next(sampler, &index));
        if (index < 0) break;
        CHECK(index < 10);
        ++count;
    }
    return count;
}

static void a_pass_goes_on_with_other_ranks(void)
{
    yoke_sampler_options options = {
        .struct_size = sizeof options, .world_size = 2, .count = 10, .no_pad = 1};
    yoke_sampler *sampler = NULL;
    OK(yoke_sampler_create(&options, &sampler));
    CHECK(yoke_sampler_length(sampler) == 5);
    OK(yoke_sampler_set_epoch(sampler, 3));
    OK(yoke_sampler_begin(sampler));
    CHECK(taken(sampler, 2) == 2);
    yoke_sampler_state state = {.struct_size = sizeof state};
    OK(yoke_sampler_get_state(sampler, &state));
    CHECK(state.epoch == 3 && state.consumed == 4);
    yoke_sampler_release(sampler);

    options.world_size = 3;
    OK(yoke_sampler_create(&options, &sampler));
    OK(yoke_sampler_load(sampler, &state));
    CHECK(yoke_sampler_length(sampler) == 2);
    OK(yoke_sampler_begin(sampler));
    CHECK(taken(sampler, 10) == 2);
    state.consumed = 11;
    FAILS(yoke_sampler_load(sampler, &state), YOKE_E_VALUE, "11 examples");
    yoke_sampler_release(sampler);
    yoke_group *alone = NULL;
    OK(yoke_comm_init_threads(1, 0, &alone));
    OK(yoke_sampler_create(&options, &sampler));
    state.consumed = 4;
    OK(yoke_sampler_regroup(sampler, alone));
    OK(yoke_sampler_load(sampler, &state));
    CHECK(yoke_sampler_length(sampler) == 6);
    FAILS(yoke_sampler_regroup(sampler, NULL), YOKE_E_VALUE, "'group'");
    FAILS(yoke_sampler_regroup(NULL, alone), YOKE_E_VALUE, "'sampler'");
    yoke_group_release(alone);
    yoke_sampler_release(sampler);
    const double shares[] = {0.5, 0.2, 0.2};
    options.shares = shares;
    FAILS(yoke_sampler_create(&options, &sampler), YOKE_E_VALUE, "'shares'");
}

int main(void)
{
    RUN(a_pass_goes_on_with_other_ranks);
    return report();
}
