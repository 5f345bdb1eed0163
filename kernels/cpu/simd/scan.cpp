// cumsum along any axis, in either direction.
#include "kernels/common/scan.h"
#include "kernels/cpu/simd/iterate.h"

YOKE_SIMD_BEGIN

constexpr int64_t kScanColumns = 256;  // columns whose sums run side by side
constexpr int64_t kScanItem = 65536;   // elements of a row scanned by a single thread

using kernels::scan_result;
using kernels::scan_sum;
using kernels::scan_term;
using kernels::scan_type;
using Scan = kernels::ScanRows;

// Scans a row of n elements from x: out[i] = before + x[0] + … + x[i]. Returns the last sum. It takes four elements
// at a time, so only one addition in four waits for the previous addition.
template <class T>
static scan_type<T> scan_row(const char *x, int64_t x_step, char *out, int64_t out_step, int64_t n,
                             scan_type<T> before)
{
    auto term = [&](int64_t i) { return scan_term(*(const T *)(x + i * x_step)); };
    auto put = [&](int64_t i, scan_type<T> sum) {
        *(scan_result<T> *)(out + i * out_step) = scan_sum<T>(sum);
    };
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        scan_type<T> a = term(i), b = a + term(i + 1), c = term(i + 2), d = c + term(i + 3);
        put(i, before + a);
        put(i + 1, before + b);
        put(i + 2, before + (b + c));
        before = before + (b + d);
        put(i + 3, before);
    }
    for (; i < n; i++) put(i, before = before + term(i));
    return before;
}

template <class T>
static scan_type<T> total_of(const char *x, int64_t step, int64_t n)
{
    scan_type<T> sums[4] = {};
    for (int64_t i = 0; i < n; i++) sums[i & 3] += scan_term(*(const T *)(x + i * step));
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Scans neighbouring columns together, a row of memory at a time.
template <class T>
static yoke_status scan_columns(const Scan &scan)
{
    const Loop<2> &rows = scan.outer;
    int64_t width = rows.shape[0], tiles = divide_up(width, kScanColumns);
    int64_t count = tiles * (rows.numel / width);
    auto run = [&](int64_t index) {
        int64_t column = index % tiles * kScanColumns, n = min(kScanColumns, width - column);
        Cursor<2> cursor(rows, index / tiles * width + column);
        scan_type<T> sums[kScanColumns] = {};
        for (int64_t i = 0; i < scan.length; i++) {
            const T *x = (const T *)(cursor.data[1] + i * scan.step[1]);
            auto *out = (scan_result<T> *)(cursor.data[0] + i * scan.step[0]);
#pragma omp simd
            for (int64_t j = 0; j < n; j++) {
                sums[j] += scan_term(x[j]);
                out[j] = scan_sum<T>(sums[j]);
            }
        }
    };
    if (rows.numel * scan.length < 2 * kGrain)
        for (int64_t i = 0; i < count; i++) run(i);
    else
        parallel_items(count, run);
    return YOKE_OK;
}

// Scans a long row: first adds up the items, then scans each item from the sum of the earlier items.
template <class T>
static yoke_status scan_long_row(const yoke_launch *launch, const Scan &scan, char *out,
                                 const char *x)
{
    int64_t items = divide_up(scan.length, kScanItem);
    Scratch scratch(launch);
    if (yoke_status status = scratch.reserve((uint64_t)items * sizeof(scan_type<T>))) return status;
    auto *before = static_cast<scan_type<T> *>(scratch.data());
    auto size = [&](int64_t item) { return min(kScanItem, scan.length - item * kScanItem); };
    parallel_items(items, [&](int64_t item) {
        before[item] = total_of<T>(x + item * kScanItem * scan.step[1], scan.step[1], size(item));
    });
    scan_type<T> sum = 0;
    for (int64_t item = 0; item < items; item++) {
        scan_type<T> own = before[item];
        before[item] = sum;
        sum += own;
    }
    parallel_items(items, [&](int64_t item) {
        int64_t first = item * kScanItem;
        scan_row<T>(x + first * scan.step[1], scan.step[1], out + first * scan.step[0],
                    scan.step[0], size(item), before[item]);
    });
    return YOKE_OK;
}

template <class T>
static yoke_status scan_all(const yoke_launch *launch, const Scan &scan)
{
    const Loop<2> &rows = scan.outer;
    if (rows.shape[0] >= 4 && rows.stride[0][0] == (int64_t)sizeof(scan_result<T>) &&
        rows.stride[0][1] == (int64_t)sizeof(T))
        return scan_columns<T>(scan);
    if (scan.length > kScanItem) {
        for (int64_t i = 0; i < rows.numel; i++) {
            Cursor<2> cursor(rows, i);
            yoke_status status = scan_long_row<T>(launch, scan, cursor.data[0], cursor.data[1]);
            if (status) return status;
        }
        return YOKE_OK;
    }
    parallel_range(rows.numel, max(1, kGrain / max(1, scan.length)),
                   [&](int64_t begin, int64_t end) {
                       Cursor<2> cursor(rows, begin);
                       for (; begin < end; begin++, cursor.advance(rows, 0, 1))
                           scan_row<T>(cursor.data[1], scan.step[1], cursor.data[0], scan.step[0],
                                       scan.length, 0);
                   });
    return YOKE_OK;
}

static yoke_status scan_axis(const yoke_launch *launch, bool reverse)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    if (out.numel == 0) return YOKE_OK;
    Scan scan(out, x, (int)launch->params[0].v.i, reverse);
    return for_any(launch, "x", x.dtype, [&]<class T>() { return scan_all<T>(launch, scan); });
}

YOKE_KERNEL(cumsum)
{
    return scan_axis(launch, false);
}

YOKE_KERNEL(_reverse_cumsum)
{
    return scan_axis(launch, true);
}

YOKE_SIMD_END
