// cumprod along any axis, and its gradient.
#include "kernels/common/scan.h"
#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

constexpr int64_t kProductColumns = 64;  // rows whose products run side by side

using kernels::scan_result;
using kernels::scan_term;

// Type of a product between multiplications. Halves are kept as float, which has range enough.
template <class T>
using product_type = std::conditional_t<is_half<T>, float, kernels::scan_type<T>>;

template <class T>
YOKE_HD scan_result<T> stored_product(product_type<T> product)
{
    if constexpr (is_float<T>)
        return convert<T>(product);
    else
        return (int64_t)product;
}

template <class T>
YOKE_HD product_type<T> product_term(T x)
{
    if constexpr (is_float<T>)
        return (product_type<T>)load<T>(x);
    else
        return scan_term(x);
}

// Returns how many rows go side by side: one, unless their elements are neighbours in memory.
template <int N>
static int64_t rows_together(const kernels::AxisRows<N> &rows)
{
    const auto size = [](int64_t stride) { return stride < 0 ? -stride : stride; };
    const bool beside = size(rows.outer.stride[0][1]) < size(rows.step[1]);
    return beside ? min(kProductColumns, rows.outer.shape[0]) : 1;
}

// Calls f(cursor, width, slot) for groups of up to `together` rows that lie side by side, by the team.
template <int N, class F>
static void each_group(const kernels::AxisRows<N> &rows, int64_t together, int64_t slots,
                       const F &f)
{
    const Loop<N> &outer = rows.outer;
    const int64_t width = outer.shape[0], tiles = divide_up(width, together);
    const int64_t count = tiles * (outer.numel / width), work = outer.numel * rows.length;
    const int64_t shares = work < 2 * kGrain ? 1 : min(count, team_chunks());
    const int64_t share = divide_up(count, shares);
    parallel_slots(shares, slots, [&](int64_t item, int slot) {
        for (int64_t i = item * share; i < min(count, (item + 1) * share); i++) {
            const int64_t column = i % tiles * together;
            f(Cursor<N>(outer, i / tiles * width + column), min(together, width - column), slot);
        }
    });
}

// Multiplies a row. It takes four elements at a time, so only one product in four waits for the previous product.
template <class T>
static void scan_row(const char *x, int64_t x_step, char *out, int64_t out_step, int64_t n)
{
    using S = product_type<T>;
    auto term = [&](int64_t i) { return product_term(*(const T *)(x + i * x_step)); };
    auto put = [&](int64_t i, S product) {
        *(scan_result<T> *)(out + i * out_step) = stored_product<T>(product);
    };
    S before = 1;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const S a = term(i), b = a * term(i + 1), c = term(i + 2), d = c * term(i + 3);
        put(i, before * a);
        put(i + 1, before * b);
        put(i + 2, before * (b * c));
        before = before * (b * d);
        put(i + 3, before);
    }
    for (; i < n; i++) put(i, before = before * term(i));
}

template <class T>
static void scan_beside(const kernels::AxisRows<2> &rows, const Cursor<2> &cursor, int64_t width)
{
    using S = product_type<T>;
    const int64_t *beside = rows.outer.stride[0];
    S products[kProductColumns];
    for (int64_t j = 0; j < width; j++) products[j] = 1;
    for (int64_t i = 0; i < rows.length; i++) {
        const char *x = cursor.data[1] + i * rows.step[1];
        char *out = cursor.data[0] + i * rows.step[0];
        for (int64_t j = 0; j < width; j++) {
            products[j] *= product_term(*(const T *)(x + j * beside[1]));
            *(scan_result<T> *)(out + j * beside[0]) = stored_product<T>(products[j]);
        }
    }
}

YOKE_KERNEL(cumprod)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    const kernels::AxisRows<2> rows({&out, &x}, (int)launch->params[0].v.i);
    const int64_t together = rows_together(rows);
    return for_any(launch, "x", x.dtype, [&]<class T>() {
        each_group<2>(rows, together, team_size(),
                      [&](const Cursor<2> &cursor, int64_t width, int) {
                          if (together > 1) return scan_beside<T>(rows, cursor, width);
                          scan_row<T>(cursor.data[1], rows.step[1], cursor.data[0], rows.step[0],
                                      rows.length);
                      });
        return (yoke_status)YOKE_OK;
    });
}

// Computes the gradient of element i: the product of the elements before i, times the sum of grad[j] times the product
// of the elements from i + 1 to j, over j from i on. The sums come first, from the end.
template <class T>
static void product_slopes(const kernels::AxisRows<3> &rows, const Cursor<3> &cursor, int64_t width,
                           double *sums)
{
    const int64_t *beside = rows.outer.stride[0], n = rows.length;
    auto at = [&](int operand, int64_t i, int64_t j) {
        return cursor.data[operand] + i * rows.step[operand] + j * beside[operand];
    };
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t j = 0; j < width; j++) {
            double later = i == n - 1 ? 0
                                      : (double)load<T>(*(const T *)at(1, i + 1, j)) *
                                            sums[(i + 1) * width + j];
            sums[i * width + j] = (double)load<T>(*(const T *)at(2, i, j)) + later;
        }
    double products[kProductColumns];
    for (int64_t j = 0; j < width; j++) products[j] = 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            *(T *)at(0, i, j) = convert<T>(products[j] * sums[i * width + j]);
            products[j] *= (double)load<T>(*(const T *)at(1, i, j));
        }
}

// Parameter: the axis.
YOKE_KERNEL(_cumprod_backward)
{
    const yoke_operand *o = launch->operands;
    if (o[2].numel == 0) return YOKE_OK;
    const kernels::AxisRows<3> rows({&o[2], &o[1], &o[0]}, (int)launch->params[0].v.i);
    const int64_t together = rows_together(rows);
    const int64_t slots = team_size(), room = together * rows.length;
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)(slots * room) * sizeof(double)))
        return status;
    return for_float(launch, "x", o[1].dtype, [&]<class T>() {
        each_group<3>(rows, together, slots, [&](const Cursor<3> &cursor, int64_t width, int slot) {
            product_slopes<T>(rows, cursor, width,
                              static_cast<double *>(scratch.data()) + slot * room);
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_SIMD_END
