/* state_show.h: prints a state, a line a node, dicts by key, as tests/python/state_run.py does. */
#ifndef YOKE_TESTS_STATE_SHOW_H
#define YOKE_TESTS_STATE_SHOW_H

#include "check.h"

#include <stdlib.h>

typedef struct Entry {
    yoke_state_key key;
    yoke_state *value;
} Entry;

enum { kMost = 64 }; /* most entries of a dict, and most tensors */

static yoke_tensor *met[kMost];
static int met_count;

static inline void print_hex(const void *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; ++i) printf("%02x", ((const unsigned char *)bytes)[i]);
}

static inline void show_tensor(yoke_state *at)
{
    yoke_tensor *x = NULL;
    int number = 0;
    OK(yoke_state_get_tensor(at, "", &x));
    while (number < met_count && met[number] != x) ++number;
    if (number == met_count && met_count < kMost) met[met_count++] = yoke_tensor_retain(x);
    printf(" tensor %d %s", number, yoke_dtype_name(yoke_tensor_dtype(x)));
    for (int64_t i = 0; i < yoke_tensor_ndim(x); ++i)
        printf(" %lld", (long long)yoke_tensor_shape(x)[i]);
    if (yoke_tensor_ndim(x) == 0) printf(" ");
    const int64_t count = yoke_tensor_numel(x) * yoke_dtype_size(yoke_tensor_dtype(x));
    unsigned char *bytes = malloc((size_t)count + 1);
    OK(yoke_tensor_copy_to_host(x, bytes, count));
    printf(" ");
    print_hex(bytes, count);
    printf("\n");
    free(bytes);
    yoke_tensor_release(x);
}

/* Forgets the tensors. Until then their handles identify a tensor in two places. */
static inline void forget_met(void)
{
    while (met_count > 0) yoke_tensor_release(met[--met_count]);
}

static inline void show_scalar(yoke_state *at)
{
    int32_t truth = 0;
    int64_t whole = 0, length = 0;
    double number = 0;
    const char *text = NULL;
    switch (yoke_state_kind(at, "")) {
        case YOKE_STATE_NONE:
            printf(" none\n");
            return;
        case YOKE_STATE_BOOL:
            OK(yoke_state_get_bool(at, "", &truth));
            printf(" bool %d\n", (int)truth);
            return;
        case YOKE_STATE_INT:
            OK(yoke_state_get_int(at, "", &whole));
            printf(" int %lld\n", (long long)whole);
            return;
        case YOKE_STATE_FLOAT:
            OK(yoke_state_get_float(at, "", &number));
            memcpy(&whole, &number, sizeof whole);
            printf(" float %016llx\n", (unsigned long long)whole);
            return;
        default:
            OK(yoke_state_get_string(at, "", &text, &length));
            printf(" string ");
            print_hex(text, length);
            printf("\n");
    }
}

static inline int compare(const void *one, const void *other)
{
    const yoke_state_key *a = &((const Entry *)one)->key, *b = &((const Entry *)other)->key;
    if (a->is_int != b->is_int) return b->is_int - a->is_int;
    if (a->is_int) return (a->number > b->number) - (a->number < b->number);
    const int64_t least = a->length < b->length ? a->length : b->length;
    const int order = memcmp(a->text, b->text, (size_t)least);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

static inline void show(yoke_state *at, const char *path)
{
    const int32_t kind = yoke_state_kind(at, "");
    const int64_t count = yoke_state_count(at);
    Entry entries[kMost];
    printf("%s", path);
    if (kind != YOKE_STATE_LIST && kind != YOKE_STATE_DICT) {
        (kind == YOKE_STATE_TENSOR ? show_tensor : show_scalar)(at);
        return;
    }
    const char *what = kind == YOKE_STATE_DICT   ? "dict"
                       : yoke_state_is_tuple(at) ? "tuple"
                                                 : "list";
    printf(" %s %lld\n", what, (long long)count);
    CHECK(count <= kMost);
    for (int64_t i = 0; i < count && i < kMost; ++i) {
        entries[i].key = (yoke_state_key){.struct_size = sizeof entries[i].key};
        OK(yoke_state_entry(at, i, &entries[i].key, &entries[i].value));
    }
    qsort(entries, (size_t)count, sizeof *entries, compare);
    for (int64_t i = 0; i < count && i < kMost; ++i) {
        char below[1000];
        const yoke_state_key *key = &entries[i].key;
        int length = snprintf(below, sizeof below, "%s/", path);
        if (key->is_int)
            snprintf(below + length, sizeof below - (size_t)length,
                     kind == YOKE_STATE_DICT ? "int %lld" : "%lld", (long long)key->number);
        else
            length += snprintf(below + length, sizeof below - (size_t)length, "string ");
        for (int64_t c = 0; !key->is_int && c < key->length; ++c)
            length += snprintf(below + length, sizeof below - (size_t)length, "%02x",
                               (unsigned char)key->text[c]);
        show(entries[i].value, below);
        yoke_state_release(entries[i].value);
    }
}

#endif /* YOKE_TESTS_STATE_SHOW_H */
