/* Data in and out: borrowed memory, copies, values, views by index, other dtypes, DLPack. */
#include "check.h"

#include <stdlib.h>

static const float six[6] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
static const int64_t two_three[2] = {2, 3};

static void count_drop(void *user)
{
    ++*(int *)user;
}

static void borrowed_memory_is_dropped_once_after_its_last_view(void)
{
    const int64_t columns[2] = {3, 2}, strides[2] = {1, 3};
    const float turned[6] = {1.0f, 4.0f, 2.0f, 5.0f, 3.0f, 6.0f};
    float data[6];
    int drops = 0;
    yoke_tensor *x = NULL, *view = NULL;
    memcpy(data, six, sizeof data);
    OK(yoke_tensor_from_memory(data, columns, 2, strides, YOKE_F32, NULL, count_drop, &drops, &x));
    CHECK(yoke_tensor_data(x) == data && yoke_tensor_is_contiguous(x) == 0);
    check_floats(x, turned, 6);
    OK(yoke_transpose(x, 0, 1, &view));
    CHECK(yoke_tensor_storage_id(view) == yoke_tensor_storage_id(x) &&
          yoke_shares_memory(view, x) == 1);
    yoke_tensor_release(x);
    CHECK(drops == 0);
    check_floats(view, six, 6);
    yoke_tensor_release(view);
    CHECK(drops == 1);
}

static void refused_memory_stays_the_callers(void)
{
    const int64_t negative[2] = {2, -3}, huge[2] = {(int64_t)1 << 62, 8};
    int64_t many[YOKE_MAX_NDIM + 1];
    float data[6] = {0};
    int drops = 0, i;
    yoke_tensor *x = NULL;
    for (i = 0; i <= YOKE_MAX_NDIM; ++i) many[i] = 1;
    FAILS(yoke_tensor_from_memory(data, negative, 2, NULL, YOKE_F32, NULL, count_drop, &drops, &x),
          YOKE_E_VALUE, "-3");
    FAILS(yoke_tensor_from_memory(data, huge, 2, NULL, YOKE_F32, NULL, count_drop, &drops, &x),
          YOKE_E_VALUE, "tensor_from_memory");
    FAILS(yoke_tensor_from_memory(data, many, YOKE_MAX_NDIM + 1, NULL, YOKE_F32, NULL, count_drop,
                                  &drops, &x),
          YOKE_E_VALUE, "'ndim' is 17");
    FAILS(yoke_tensor_from_memory(NULL, two_three, 2, NULL, YOKE_F32, NULL, count_drop, &drops, &x),
          YOKE_E_VALUE, "'data' is NULL");
    FAILS(yoke_tensor_from_memory(data, two_three, 2, NULL, 77, NULL, count_drop, &drops, &x),
          YOKE_E_TYPE, "77");
    FAILS(yoke_tensor_from_memory(data, NULL, 2, NULL, YOKE_F32, NULL, count_drop, &drops, &x),
          YOKE_E_VALUE, "'shape' is NULL, but its count is 2");
    CHECK(drops == 0 && x == NULL);
}

static void sizes_that_differ_name_both(void)
{
    float data[6] = {0};
    yoke_tensor *x = NULL;
    FAILS(yoke_tensor_from_data(six, 20, two_three, 2, YOKE_F32, NULL, &x), YOKE_E_VALUE,
          "24 bytes");
    FAILS(yoke_tensor_from_data(NULL, 24, two_three, 2, YOKE_F32, NULL, &x), YOKE_E_VALUE,
          "'data' is NULL");
    FAILS(yoke_tensor_from_data(six, -1, two_three, 2, YOKE_F32, NULL, &x), YOKE_E_VALUE, "-1");
    x = floats(six, two_three, 2);
    FAILS(yoke_tensor_copy_to_host(x, data, 23), YOKE_E_VALUE, "23");
    FAILS(yoke_tensor_copy_from_host(x, data, 25), YOKE_E_VALUE, "25");
    FAILS(yoke_tensor_copy_to_host(x, NULL, 24), YOKE_E_VALUE, "'data' is NULL");
    yoke_tensor_release(x);
}

static void a_tensor_tells_its_layout(void)
{
    yoke_tensor *x = floats(six, two_three, 2);
    yoke_device *device = yoke_tensor_device(x);
    CHECK(yoke_tensor_ndim(x) == 2 && yoke_tensor_numel(x) == 6 && yoke_tensor_nbytes(x) == 24);
    CHECK(yoke_tensor_shape(x)[0] == 2 && yoke_tensor_shape(x)[1] == 3);
    CHECK(yoke_tensor_strides(x)[0] == 3 && yoke_tensor_strides(x)[1] == 1);
    CHECK(yoke_tensor_dtype(x) == YOKE_F32 && yoke_tensor_itemsize(x) == 4);
    CHECK(yoke_tensor_is_contiguous(x) == 1 && yoke_tensor_storage_nbytes(x) == 24);
    CHECK(strcmp(yoke_device_kind(device), "cpu") == 0 && yoke_device_index(device) == 0);
    CHECK(yoke_device_name(device)[0] != '\0' && strcmp(yoke_device_spec(device), "cpu") == 0);
    yoke_tensor_release(x);
}

static void host_copies_reach_strided_tensors(void)
{
    const int64_t turned_shape[2] = {3, 2};
    const float turned[6] = {10.0f, 40.0f, 20.0f, 50.0f, 30.0f, 60.0f};
    const float wanted[6] = {10.0f, 20.0f, 30.0f, 40.0f, 50.0f, 60.0f};
    yoke_tensor *x = floats(six, two_three, 2), *view = NULL;
    OK(yoke_transpose(x, 0, 1, &view));
    CHECK(yoke_tensor_shape(view)[0] == turned_shape[0] &&
          yoke_tensor_shape(view)[1] == turned_shape[1]);
    OK(yoke_tensor_copy_from_host(view, turned, sizeof turned));
    check_floats(x, wanted, 6);
    check_floats(view, turned, 6);
    yoke_tensor_release(view);
    yoke_tensor_release(x);
}

static void one_element_has_a_value(void)
{
    yoke_scalar value = {YOKE_ARG_FLOAT, 0, {0}};
    yoke_tensor *x = NULL;
    double f = 0;
    int64_t i = 0;
    value.v.f = -2.75;
    OK(yoke_tensor_scalar(&value, YOKE_NONE, NULL, &x));
    CHECK(yoke_tensor_ndim(x) == 0 && yoke_tensor_dtype(x) == YOKE_F32);
    OK(yoke_tensor_item_f64(x, &f));
    OK(yoke_tensor_item_i64(x, &i));
    CHECK(f == -2.75 && i == -2);
    yoke_tensor_release(x);
    value.v.f = 1e30;
    OK(yoke_tensor_scalar(&value, YOKE_F64, NULL, &x));
    FAILS(yoke_tensor_item_i64(x, &i), YOKE_E_VALUE, "1e+30");
    yoke_tensor_release(x);
    value.kind = YOKE_ARG_INT;
    value.v.i = INT64_MAX;
    OK(yoke_tensor_scalar(&value, YOKE_NONE, NULL, &x));
    CHECK(yoke_tensor_dtype(x) == YOKE_I64);
    OK(yoke_tensor_item_i64(x, &i));
    CHECK(i == INT64_MAX);
    yoke_tensor_release(x);
    x = floats(six, two_three, 2);
    FAILS(yoke_tensor_item_f64(x, &f), YOKE_E_VALUE, "6 elements");
    yoke_tensor_release(x);
}

static void to_returns_the_tensor_itself_where_nothing_changes(void)
{
    yoke_tensor *x = floats(six, two_three, 2), *same = NULL, *other = NULL;
    double first = 0;
    OK(yoke_tensor_to(x, NULL, YOKE_F32, &same));
    CHECK(same == x);
    OK(yoke_tensor_to(x, NULL, YOKE_I32, &other));
    CHECK(other != x && yoke_tensor_dtype(other) == YOKE_I32);
    FAILS(yoke_tensor_item_f64(other, &first), YOKE_E_VALUE, "6 elements");
    yoke_tensor_release(other);
    FAILS(yoke_tensor_to(x, NULL, -4, &other), YOKE_E_TYPE, "-4");
    yoke_tensor_release(same);
    yoke_tensor_release(x);
}

static yoke_index at(int64_t position)
{
    yoke_index item = {YOKE_INDEX_INT, 0, 0, 0, 0, NULL};
    item.start = position;
    return item;
}

static void indexing_follows_numpy(void)
{
    yoke_index new_axis = {YOKE_INDEX_NEW_AXIS, 0, 0, 0, 0, NULL},
               dots = {YOKE_INDEX_ELLIPSIS, 0, 0, 0, 0, NULL};
    yoke_index every_second = {
        YOKE_INDEX_SLICE, YOKE_INDEX_NO_START | YOKE_INDEX_NO_STOP, 0, 0, 2, NULL};
    yoke_index items[4];
    const float row[3] = {4.0f, 5.0f, 6.0f}, ends[4] = {1.0f, 3.0f, 4.0f, 6.0f},
                last[2] = {3.0f, 6.0f};
    yoke_tensor *x = floats(six, two_three, 2), *y = NULL;
    items[0] = at(-1);
    OK(yoke_tensor_index(x, items, 1, &y)); /* x[-1] */
    check_floats(y, row, 3);
    CHECK(yoke_tensor_ndim(y) == 1 && yoke_shares_memory(x, y) == 1);
    yoke_tensor_release(y);
    items[0] = dots;
    items[1] = every_second;
    OK(yoke_tensor_index(x, items, 2, &y)); /* x[..., ::2] */
    check_floats(y, ends, 4);
    yoke_tensor_release(y);
    items[0] = new_axis;
    items[1] = dots;
    items[2] = at(2);
    items[3] = new_axis;
    OK(yoke_tensor_index(x, items, 4, &y)); /* x[None, ..., 2, None] */
    check_floats(y, last, 2);
    CHECK(yoke_tensor_ndim(y) == 3 && yoke_tensor_shape(y)[0] == 1 && yoke_tensor_shape(y)[1] == 2);
    CHECK(yoke_tensor_shape(y)[2] == 1);
    yoke_tensor_release(y);
    OK(yoke_tensor_index(x, NULL, 0, &y)); /* x[()] */
    CHECK(y != x);
    check_floats(y, six, 6);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
}

static yoke_index by(yoke_tensor *tensor)
{
    yoke_index item = {YOKE_INDEX_TENSOR, 0, 0, 0, 0, NULL};
    item.tensor = tensor;
    return item;
}

static yoke_tensor *integers(const int64_t *values, int64_t count)
{
    yoke_tensor *made = NULL;
    OK(yoke_tensor_from_data(values, count * 8, &count, 1, YOKE_I64, NULL, &made));
    return made;
}

static void tensors_and_bools_index_and_are_assigned_to(void)
{
    const int64_t columns[3] = {2, 0, -1}, beyond[2] = {0, 3};
    const float picked[3] = {6.0f, 4.0f, 6.0f}, written[6] = {7.0f, 2.0f, 7.0f, 4.0f, 5.0f, 6.0f},
                filled[6] = {7.0f, 2.0f, 7.0f, -1.0f, -1.0f, -1.0f}, seven = 7.0f;
    const unsigned char truths[2] = {0, 1};
    const int64_t two = 2;
    yoke_index items[2];
    yoke_scalar number = {YOKE_ARG_INT, 0, {0}};
    yoke_tensor *x = floats(six, two_three, 2), *index = integers(columns, 3), *y = NULL,
                *value = floats(&seven, NULL, 0), *bad = integers(beyond, 2), *mask = NULL;
    OK(yoke_tensor_from_data(truths, 2, &two, 1, YOKE_BOOL, NULL, &mask));
    items[0] = at(1);
    items[1] = by(index);
    OK(yoke_tensor_index(x, items, 2, &y)); /* x[1, [2, 0, -1]] */
    check_floats(y, picked, 3);
    CHECK(yoke_shares_memory(x, y) == 0);
    yoke_tensor_release(y);
    items[0].start = 0;
    OK(yoke_tensor_index_put(x, items, 2, value)); /* x[0, [2, 0, -1]] = 7 */
    check_floats(x, written, 6);
    items[0] = by(mask);
    number.v.i = -1;
    OK(yoke_tensor_index_fill(x, items, 1, &number)); /* x[mask] = -1 */
    check_floats(x, filled, 6);
    items[0] = at(0);
    items[0].kind = YOKE_INDEX_BOOL;
    OK(yoke_tensor_index(x, items, 1, &y)); /* x[False] */
    CHECK(yoke_tensor_ndim(y) == 3 && yoke_tensor_numel(y) == 0);
    yoke_tensor_release(y);
    items[0] = by(bad);
    FAILS(yoke_tensor_index(x, items, 1, &y), YOKE_E_INDEX, "the index[1] is 3");
    FAILS(yoke_tensor_index_put(x, items, 1, value), YOKE_E_INDEX, "the index[1] is 3");
    items[0] = by(x);
    FAILS(yoke_tensor_index(x, items, 1, &y), YOKE_E_TYPE, "item 0 is a tensor of float32");
    items[0] = by(NULL);
    FAILS(yoke_tensor_index(x, items, 1, &y), YOKE_E_VALUE, "the tensor of item 0 is NULL");
    number.kind = YOKE_ARG_TENSOR;
    FAILS(yoke_tensor_index_fill(x, items, 0, &number), YOKE_E_TYPE, "'value' has kind");
    FAILS(yoke_tensor_index_put(x, items, 0, NULL), YOKE_E_VALUE, "'values' is NULL");
    check_floats(x, filled, 6);
    yoke_tensor_release(mask);
    yoke_tensor_release(bad);
    yoke_tensor_release(value);
    yoke_tensor_release(index);
    yoke_tensor_release(x);
}

static void bad_indices_are_named(void)
{
    yoke_index items[3];
    yoke_index dots = {YOKE_INDEX_ELLIPSIS, 0, 0, 0, 0, NULL},
               stuck = {YOKE_INDEX_SLICE, 0, 0, 1, 0, NULL};
    yoke_tensor *x = floats(six, two_three, 2), *y = NULL;
    items[0] = at(2);
    FAILS(yoke_tensor_index(x, items, 1, &y), YOKE_E_INDEX, "index 2 is out of range for axis 0");
    items[0] = items[1] = items[2] = at(0);
    FAILS(yoke_tensor_index(x, items, 3, &y), YOKE_E_INDEX, "3 indices");
    items[0] = items[1] = dots;
    FAILS(yoke_tensor_index(x, items, 2, &y), YOKE_E_VALUE, "second ellipsis");
    items[0].kind = 9; /* no YOKE_INDEX_* */
    FAILS(yoke_tensor_index(x, items, 1, &y), YOKE_E_VALUE, "unknown kind 9");
    items[0] = stuck;
    FAILS(yoke_tensor_index(x, items, 1, &y), YOKE_E_VALUE, "step");
    FAILS(yoke_tensor_index(x, NULL, 1, &y), YOKE_E_VALUE, "'items' is NULL");
    yoke_tensor_release(x);
}

static void dlpack_goes_both_ways_without_a_copy(void)
{
    int32_t versioned;
    for (versioned = 0; versioned <= 1; ++versioned) {
        yoke_tensor *x = floats(six, two_three, 2), *y = NULL;
        void *managed = NULL;
        OK(yoke_tensor_to_dlpack(x, versioned, NULL, &managed));
        OK(yoke_tensor_from_dlpack(managed, versioned, &y));
        CHECK(yoke_tensor_data(x) == yoke_tensor_data(y));
        yoke_tensor_release(x);
        check_floats(y, six, 6);
        yoke_tensor_release(y);
    }
}

static void dtypes_have_names_and_sizes(void)
{
    yoke_dtype dtype = 99;
    CHECK(strcmp(yoke_dtype_name(YOKE_BF16), "bfloat16") == 0 && yoke_dtype_size(YOKE_BF16) == 2);
    CHECK(yoke_dtype_name(YOKE_NONE) == NULL && yoke_dtype_name(YOKE_DTYPE_COUNT) == NULL);
    CHECK(yoke_dtype_size(YOKE_NONE) == 0 && yoke_dtype_size(-1) == 0);
    FAILS(yoke_dtype_from_name("float31", &dtype), YOKE_E_VALUE, "float31");
    CHECK(dtype == 99);
    OK(yoke_dtype_from_name("f16", &dtype));
    CHECK(dtype == YOKE_F16);
    OK(yoke_dtype_from_name("int64", &dtype));
    CHECK(dtype == YOKE_I64);
}

static void raw_blocks_come_and_go(void)
{
    int64_t before = 0, during = 0, after = 0;
    void *block = &before;
    OK(yoke_memory_allocated(NULL, &before));
    OK(yoke_alloc(1000, NULL, NULL, &block));
    memset(block, 1, 1000);
    OK(yoke_memory_allocated(NULL, &during));
    CHECK(during >= before + 1000);
    OK(yoke_free(block));
    OK(yoke_memory_allocated(NULL, &after));
    CHECK(after == before);
    FAILS(yoke_free(&before), YOKE_E_VALUE, "free");
    FAILS(yoke_alloc(-5, NULL, NULL, &block), YOKE_E_VALUE, "'bytes' is -5");
    CHECK(block == NULL);
}

static void a_storage_is_seen_whole_and_in_other_layouts(void)
{
    const float values[6] = {0, 1, 2, 3, 4, 5};
    const int64_t shape[2] = {2, 3}, turned[2] = {3, 2}, strides[2] = {1, 3}, back[1] = {3},
                  less[1] = {-1}, bytes[1] = {24};
    const int64_t far[1] = {INT64_MAX / 8};
    yoke_tensor *x = NULL, *row = NULL, *whole = NULL, *view = NULL;
    float got[6];
    OK(yoke_tensor_from_data(values, sizeof values, shape, 2, YOKE_F32, NULL, &x));
    OK(yoke_slice(x, 0, &(int64_t){1}, NULL, 1, &row));
    CHECK(yoke_tensor_storage_offset(x) == 0 && yoke_tensor_storage_offset(row) == 12);
    CHECK(yoke_tensor_storage_offset(NULL) == -1);
    OK(yoke_tensor_view_storage(row, YOKE_U8, bytes, NULL, 1, 0, &whole));
    CHECK(yoke_tensor_storage_id(whole) == yoke_tensor_storage_id(x) &&
          yoke_tensor_nbytes(whole) == 24);
    OK(yoke_tensor_view_storage(whole, YOKE_F32, turned, strides, 2, 0, &view));
    OK(yoke_tensor_copy_to_host(view, got, sizeof got));
    CHECK(got[1] == 3 && got[2] == 1);
    yoke_tensor_release(view);
    OK(yoke_tensor_view_storage(row, YOKE_F32, back, less, 1, 8, &view));
    OK(yoke_tensor_copy_to_host(view, got, 12));
    CHECK(got[0] == 2 && got[2] == 0);
    yoke_tensor_release(view);
    OK(yoke_tensor_view_storage(x, YOKE_F32, (const int64_t[]){0}, NULL, 1, 24, &view));
    yoke_tensor_release(view);
    FAILS(yoke_tensor_view_storage(x, YOKE_F32, shape, NULL, 2, 4, &view), YOKE_E_VALUE,
          "the 24 bytes of the storage");
    FAILS(yoke_tensor_view_storage(x, YOKE_F32, back, less, 1, 4, &view), YOKE_E_VALUE,
          "bytes of the storage");
    FAILS(yoke_tensor_view_storage(x, YOKE_F32, shape, NULL, 2, 2, &view), YOKE_E_VALUE,
          "a multiple of the 4 bytes");
    FAILS(yoke_tensor_view_storage(x, YOKE_F32, shape, NULL, 2, -4, &view), YOKE_E_VALUE,
          "bytes of the storage");
    FAILS(yoke_tensor_view_storage(x, YOKE_F32, back, far, 1, 0, &view), YOKE_E_VALUE, "");
    CHECK(view == NULL);
    double borrowed[2] = {0};
    yoke_tensor *odd = NULL;
    OK(yoke_tensor_from_memory((char *)borrowed + 1, (const int64_t[]){8}, 1, NULL, YOKE_U8, NULL,
                               NULL, NULL, &odd));
    FAILS(yoke_tensor_view_storage(odd, YOKE_F32, (const int64_t[]){1}, NULL, 1, 0, &view),
          YOKE_E_VALUE, "not aligned to the 4 bytes");
    yoke_tensor_release(odd);
    yoke_tensor_release(whole);
    yoke_tensor_release(row);
    yoke_tensor_release(x);
}

int main(void)
{
    RUN(borrowed_memory_is_dropped_once_after_its_last_view);
    RUN(refused_memory_stays_the_callers);
    RUN(sizes_that_differ_name_both);
    RUN(a_tensor_tells_its_layout);
    RUN(host_copies_reach_strided_tensors);
    RUN(one_element_has_a_value);
    RUN(to_returns_the_tensor_itself_where_nothing_changes);
    RUN(indexing_follows_numpy);
    RUN(tensors_and_bools_index_and_are_assigned_to);
    RUN(bad_indices_are_named);
    RUN(dlpack_goes_both_ways_without_a_copy);
    RUN(dtypes_have_names_and_sizes);
    RUN(raw_blocks_come_and_go);
    RUN(a_storage_is_seen_whole_and_in_other_layouts);
    return report();
}
