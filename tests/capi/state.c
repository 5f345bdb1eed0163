/* States from C: trees by path and by entry, files of states, and refusals. state_run.c has the objects. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */

#include "check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static char path[64];

static yoke_state *node(void)
{
    yoke_state *made = NULL;
    OK(yoke_state_create(&made));
    return made;
}

/* Saves a state and returns the state loaded from the file. */
static yoke_state *again(yoke_state *state, const yoke_load_options *options)
{
    yoke_work *work = NULL;
    yoke_state *back = NULL;
    int64_t bytes = 0, of = -1;
    OK(yoke_save(path, state, NULL, &work));
    OK(yoke_work_wait(work, -1));
    OK(yoke_work_progress(work, &bytes, &of));
    CHECK(yoke_work_done(work) == 1 && bytes == of && bytes > 8);
    yoke_work_release(work);
    OK(yoke_load(path, options, &back));
    return back;
}

static void values_are_set_and_got_by_path(void)
{
    yoke_state *root = node(), *back = NULL;
    int32_t truth = 0;
    int64_t whole = 0, length = 0;
    double number = 0;
    const char *text = NULL;
    CHECK(yoke_state_create(NULL) ==
          YOKE_E_VALUE); /* no node is left; the leak sanitizer would report a node */
    CHECK(yoke_state_kind(root, "") == YOKE_STATE_NONE && yoke_state_count(root) == 0);
    OK(yoke_state_set_int(root, "a/b/most", INT64_MAX));
    OK(yoke_state_set_float(root, "a/zero", -0.0));
    OK(yoke_state_set_bool(root, "a/b/true", 1));
    OK(yoke_state_set_string(root, "text", "a\0b", 3));
    OK(yoke_state_set_list(root, "tuple", 1));
    OK(yoke_state_set_none(root, "tuple/0"));
    OK(yoke_state_set_int(root, "~0~1", 7));
    back = again(root, NULL);
    CHECK(yoke_state_kind(back, "") == YOKE_STATE_DICT && yoke_state_count(back) == 4);
    OK(yoke_state_get_int(back, "a/b/most", &whole));
    CHECK(whole == INT64_MAX);
    OK(yoke_state_get_float(back, "a/b/most", &number));
    CHECK(number == 9223372036854775807.0);
    OK(yoke_state_get_float(back, "a/zero", &number));
    CHECK(number == 0 && signbit(number));
    OK(yoke_state_get_bool(back, "a/b/true", &truth));
    CHECK(truth == 1);
    OK(yoke_state_get_string(back, "text", &text, &length));
    CHECK(length == 3 && memcmp(text, "a\0b", 4) == 0);
    OK(yoke_state_get_int(back, "~0~1", &whole));
    CHECK(whole == 7 && yoke_state_kind(back, "tuple/0") == YOKE_STATE_NONE);
    CHECK(yoke_state_kind(back, "tuple/1") == -1 && yoke_state_kind(back, "none") == -1);
    yoke_state *tuple = NULL;
    OK(yoke_state_get(back, "tuple", &tuple));
    CHECK(yoke_state_is_tuple(tuple) == 1 && yoke_state_is_tuple(back) == 0);
    FAILS(yoke_state_get_int(back, "a/zero", &whole), YOKE_E_TYPE,
          "'a/zero' is a float; it must be");
    FAILS(yoke_state_get_int(back, "a/b/mots", &whole), YOKE_E_VALUE, "did you mean 'most'");
    FAILS(yoke_state_set_int(back, "tuple/2", 1), YOKE_E_VALUE, "list of 1");
    FAILS(yoke_state_set_int(back, "text/x", 1), YOKE_E_TYPE, "a string");
    FAILS(yoke_state_set_int(back, "a~", 1), YOKE_E_VALUE, "'~'");
    FAILS(yoke_state_set_string(back, "x", "\xff", -1), YOKE_E_VALUE, "UTF-8");
    FAILS(yoke_state_set_string(back, "x", "a", -2), YOKE_E_VALUE, "-2");
    FAILS(yoke_state_set(back, "tuple/0", back), YOKE_E_VALUE, "contain itself");
    yoke_state_release(tuple);
    yoke_state_release(back);
    yoke_state_release(root);
}

static void entries_keep_their_order_and_keys_their_kind(void)
{
    yoke_state *root = node(), *value = node(), *back = NULL, *child = NULL;
    const yoke_state_key keys[] = {{sizeof *keys, 0, 0, "5", -1},
                                   {sizeof *keys, 1, 5, NULL, 0},
                                   {sizeof *keys, 1, INT64_MIN, NULL, 0},
                                   {sizeof *keys, 0, 0, "a/b\0~", 5}};
    yoke_state_key found = {sizeof found, 0, 0, NULL, 0};
    FAILS(yoke_state_put(root, &keys[0], value), YOKE_E_TYPE, "only a dict has keys");
    OK(yoke_state_set_dict(root, ""));
    for (int i = 0; i < 4; ++i) {
        OK(yoke_state_set_int(value, "", i));
        OK(yoke_state_put(root, &keys[i], value));
        yoke_state_release(value);
        value = node();
    }
    back = again(root, NULL);
    for (int64_t i = 0; i < 4; ++i) {
        int64_t number = -1;
        OK(yoke_state_entry(back, i, &found, &child));
        OK(yoke_state_get_int(child, "", &number));
        CHECK(number == i && found.is_int == keys[i].is_int && found.number == keys[i].number);
        if (i == 0) CHECK(found.length == 1 && !strcmp(found.text, "5"));
        if (i == 3) CHECK(found.length == 5 && !memcmp(found.text, "a/b\0~", 6));
        yoke_state_release(child);
    }
    FAILS(yoke_state_entry(back, 4, &found, NULL), YOKE_E_INDEX, "4 entries");
    FAILS(yoke_state_append(back, value), YOKE_E_TYPE, "only a list");
    yoke_state_release(back);
    yoke_state_release(value);
    yoke_state_release(root);
}

static void trees_are_64_deep(void)
{
    yoke_state *inner = node();
    OK(yoke_state_set_int(inner, "leaf", 1));
    for (int depth = 1; depth < 64; ++depth) {
        yoke_state *outer = node();
        OK(yoke_state_set_list(outer, "", 0));
        OK(yoke_state_append(outer, inner));
        yoke_state_release(inner);
        inner = outer;
    }
    yoke_state *back = again(inner, NULL), *last = node();
    OK(yoke_state_set_list(last, "", 0));
    FAILS(yoke_state_append(last, inner), YOKE_E_VALUE, "64 deep");
    yoke_state_release(last);
    yoke_state_release(back);
    yoke_state_release(inner);
}

static int32_t wants_y(void *user, const char *name)
{
    ++*(int *)user;
    return strstr(name, "y") != NULL;
}

static void tensors_are_loaded_as_asked(void)
{
    const int64_t shape[] = {2};
    const float numbers[] = {1.5f, -2}, others[] = {3, 4};
    int asked = 0;
    yoke_state *root = node(), *back = NULL;
    yoke_tensor *x = floats(numbers, shape, 1), *y = floats(others, shape, 1), *one = NULL,
                *two = NULL;
    OK(yoke_state_set_tensor(root, "x", x));
    OK(yoke_state_set_tensor(root, "net/tied", x));
    OK(yoke_state_set_tensor(root, "net/y", y));
    back = again(root, NULL);
    OK(yoke_state_get_tensor(back, "x", &one));
    OK(yoke_state_get_tensor(back, "net/tied", &two));
    CHECK(one == two);
    check_floats(one, numbers, 2);
    yoke_tensor_release(one);
    yoke_tensor_release(two);
    yoke_state_release(back);
    const yoke_load_options prefix = {.struct_size = sizeof prefix, .prefix = "net.", .copy = 1};
    back = again(root, &prefix);
    CHECK(yoke_state_count(back) == 1 && yoke_state_kind(back, "net.y") == YOKE_STATE_TENSOR);
    yoke_state_release(back);
    const yoke_load_options wanted = {
        .struct_size = sizeof wanted, .dtype = YOKE_BF16, .wanted = wants_y, .user = &asked};
    back = again(root, &wanted);
    CHECK(asked == 2 && yoke_state_count(back) == 1);
    OK(yoke_state_get_tensor(back, "net.y", &one));
    CHECK(yoke_tensor_dtype(one) == YOKE_BF16);
    yoke_tensor_release(one);
    yoke_state_release(back);
    const yoke_load_options whole = {.struct_size = sizeof whole, .dtype = YOKE_I64};
    FAILS(yoke_load(path, &whole, &back), YOKE_E_TYPE, "int64");
    CHECK(back == NULL);
    yoke_tensor_release(x);
    yoke_tensor_release(y);
    yoke_state_release(root);
}

static void a_file_tells_what_is_in_it(void)
{
    yoke_state *root = node(), *metadata = node(), *info = NULL;
    int64_t number = 0;
    int32_t has_tree = 0;
    const char *text = NULL;
    OK(yoke_state_set_int(root, "step", 3));
    OK(yoke_state_set_string(metadata, "who", "me", -1));
    yoke_save_options options = {.struct_size = sizeof options, .metadata = metadata};
    OK(yoke_save(path, root, &options, NULL));
    OK(yoke_load_info(path, &info));
    OK(yoke_state_get_string(info, "metadata/who", &text, NULL));
    CHECK(!strcmp(text, "me"));
    OK(yoke_state_get_int(info, "bytes", &number));
    CHECK(number % 64 == 0 && number > 0);
    OK(yoke_state_get_bool(info, "has_tree", &has_tree));
    CHECK(has_tree == 1);
    OK(yoke_state_set_int(metadata, "who", 3));
    FAILS(yoke_save(path, root, &options, NULL), YOKE_E_TYPE, "'who'");
    yoke_state_release(info);
    yoke_state_release(metadata);
    yoke_state_release(root);
}

static void write_file(const char *header, const char *data)
{
    const uint64_t length = strlen(header);
    unsigned char bytes[8];
    FILE *file = fopen(path, "wb");
    for (int i = 0; i < 8; ++i) bytes[i] = (unsigned char)(length >> (8 * i));
    CHECK(fwrite(bytes, 1, 8, file) == 8 && fputs(header, file) >= 0 && fputs(data, file) >= 0);
    fclose(file);
}

static void broken_files_are_refused_by_rule_tensor_and_place(void)
{
    const struct {
        const char *header, *data, *says;
    } cases[] = {
        {"[]", "", "does not begin with '{'"},
        {"{} x", "", "not JSON at byte"},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "1234",
         "tensor 'x' takes 8 bytes by shape and dtype (data_offsets 0 to 4)"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "12345",
         "the tensors take 4 bytes, but after the header there are 5"},
        {"{\"__metadata__\":{\"yoke.format\":\"2\",\"yoke.tree\":\"[]\"}}", "",
         "the tree has format '2'"},
    };
    yoke_state *back = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        write_file(cases[i].header, cases[i].data);
        back = (yoke_state *)path;
        FAILS(yoke_load(path, NULL, &back), YOKE_E_CHECKPOINT, cases[i].says);
        CHECK(back == NULL && strstr(yoke_last_error()->message, path));
    }
    remove(path);
    FAILS(yoke_load(path, NULL, &back), YOKE_E_IO, path);
    CHECK(yoke_last_error()->native_code == 2);
    FAILS(yoke_load_info(path, &back), YOKE_E_IO, path);
    FAILS(yoke_load(NULL, NULL, &back), YOKE_E_VALUE, "'path'");
    FAILS(yoke_save("/nowhere/file", NULL, NULL, NULL), YOKE_E_VALUE, "'state'");
    back = node();
    FAILS(yoke_save("/nowhere/file", back, NULL, NULL), YOKE_E_IO, "/nowhere");
    yoke_state_release(back);
}

static void files_of_other_formats_are_named(void)
{
    const struct {
        const char *begin, *name;
    } cases[] = {
        {"\x93NUMPY\1aaaaaaaaaaaaaaaa", "an array of NumPy (.npy)"},
        {"GGUF\3aaaaaaaaaaaaaaaaaaaaa", "a model of llama.cpp (GGUF)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        yoke_state *back = NULL;
        FILE *file = fopen(path, "wb");
        CHECK(file && fwrite(cases[i].begin, 1, strlen(cases[i].begin), file) > 0);
        CHECK(file && fclose(file) == 0);
        FAILS(yoke_load(path, NULL, &back), YOKE_E_CHECKPOINT, cases[i].name);
        CHECK(yoke_last_error()->native_code == EINVAL && back == NULL);
    }
    remove(path);
}

int main(void)
{
    char folder[] = "/tmp/yoke-state-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
    RUN(values_are_set_and_got_by_path);
    RUN(entries_keep_their_order_and_keys_their_kind);
    RUN(trees_are_64_deep);
    RUN(tensors_are_loaded_as_asked);
    RUN(a_file_tells_what_is_in_it);
    RUN(broken_files_are_refused_by_rule_tensor_and_place);
    RUN(files_of_other_formats_are_named);
    remove(path);
    remove(folder);
    return report();
}
