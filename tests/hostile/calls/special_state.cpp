// special_state.cpp: states, whose keys and texts have separate lengths, and files of states.
#include "special.h"

#include <iterator>

namespace hostile::special {

namespace {

// Draws a text and a valid length: -1 if the text ends with a NUL. Rarely the length is invalid.
const char *text_and_length(Draw &d, int64_t &length)
{
    const char *text = d.word(Words::kNode);
    length = d.one_in(2) || !text ? -1 : static_cast<int64_t>(d.below(std::strlen(text) + 1));
    if (d.one_in(16)) length = -2 - static_cast<int64_t>(d.below(100));
    d.show("%lld", static_cast<long long>(length));
    return text;
}

// Wants every third name. The result is at times a number that is no proper flag.
int32_t wanted(void *user, const char *name)
{
    auto &count = *static_cast<int *>(user);
    return (++count + static_cast<int>(std::strlen(name))) % 3 == 0 ? count : 0;
}

}  // namespace

void yoke_state_set_string(Draw &d)
{
    yoke_state *state = d.handle<yoke_state>();
    const char *path = d.word(Words::kNode);
    int64_t length = 0;
    const char *text = text_and_length(d, length);
    d.announce();
    d.finish(::yoke_state_set_string(state, path, text, length));
}

void yoke_state_put(Draw &d)
{
    yoke_state *dict = d.handle<yoke_state>();
    yoke_state_key *key = d.array<yoke_state_key>(1);
    *key = {};
    key->struct_size = d.one_in(8) ? d.uint32() % 4 : sizeof *key;
    key->is_int = d.one_in(2);
    key->number = d.int64();
    key->text = text_and_length(d, key->length);
    yoke_state *value = d.handle<yoke_state>();
    d.announce();
    d.finish(::yoke_state_put(dict, d.one_in(16) ? nullptr : key, value));
}

void yoke_save(Draw &d)
{
    const char *path = d.word(Words::kPath);
    yoke_state *state = d.handle<yoke_state>();
    yoke_save_options *options = d.array<yoke_save_options>(1);
    *options = {};
    options->struct_size = sizeof *options;
    options->non_blocking = d.one_in(2);
    options->metadata = d.one_in(3) ? d.handle<yoke_state>() : nullptr;
    options->max_shard = d.one_in(4) ? d.word(Words::kAmount) : nullptr;
    yoke_work **out = d.out<yoke_work>();
    d.announce();
    d.finish(::yoke_save(path, state, d.one_in(3) ? nullptr : options, out));
}

void yoke_load(Draw &d)
{
    int asked = 0;
    const char *path = d.word(Words::kPath);
    yoke_load_options *options = d.array<yoke_load_options>(1);
    *options = {};
    options->struct_size = sizeof *options;
    options->copy = d.one_in(2);
    options->device = d.one_in(2) ? d.handle<yoke_device>() : nullptr;
    options->dtype = d.one_in(2) ? d.dtype() : YOKE_NONE;
    options->prefix = d.one_in(4) ? d.word(Words::kNode) : nullptr;
    options->wanted = d.one_in(3) ? wanted : nullptr;
    options->user = &asked;
    yoke_state **out = d.out<yoke_state>();
    d.announce();
    d.finish(::yoke_load(path, d.one_in(3) ? nullptr : options, out));
}

}  // namespace hostile::special
