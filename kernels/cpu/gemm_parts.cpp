// Products through oneDNN, bias fused, cut into parts for the team: by matrices, or by rows or columns of the result.
//
// Each part is a separate product, computed by oneDNN in one thread, with dense operands: other operands are copied
// first. Two rules keep the bits independent of the number of threads.
//  * oneDNN's kernels for AVX-512 treat all dense operands alike: an element of the result is the same sum in the
//    same order, wherever the cut lies. So a single thread makes no cut, and a team may cut freely.
//  * The other kernels (before AVX-512, and AMX except for small depths) do not: the order depends on the extents.
//    For them the cut depends on the shape only, and a single thread computes the same parts in sequence.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "kernels/cpu/gemm_cache.h"
#include "kernels/cpu/gemm_deep.h"
#include "kernels/cpu/gemm_even.h"
#include "kernels/cpu/onednn_parts.h"

namespace yoke::cpu {

// Multiplications worth a thread, and multiplications worth a fixed part, which a single thread also computes.
constexpr double kPartWork = 1 << 19, kFixedWork = 1 << 22, kFixedAmxWork = 1 << 28;
constexpr int64_t kMostFixedParts = 64;
// Rows or columns between two cuts: what kernels take at once.
constexpr int64_t kCutUnit = 16;

static yoke_status fail_product(dnnl_status_t status, const Product &product)
{
    char use[160];
    snprintf(use, sizeof use, "a product of %lld x %lld by %lld x %lld", (long long)product.m,
             (long long)product.k, (long long)product.k, (long long)product.n);
    return fail_onednn(status, use);
}

// ---- operands -----------------------------------------------------------------------------------------------------

// Changes strides so that oneDNN supports them: one axis is dense, and the step of the other axis is at least the
// dense axis's length. An axis of length 1 has no real stride and gets a fitting stride. Returns false if this is
// impossible.
static bool normalise(Matrix &matrix, int64_t batch, int64_t rows, int64_t columns)
{
    if (batch == 1) matrix.batch_stride = 0;
    int64_t &row = matrix.row_stride, &column = matrix.column_stride;
    if (columns == 1) column = 1;
    if (rows == 1) row = column == 1 ? columns : 1;
    bool row_major = column == 1 && row >= columns;
    bool column_major = row == 1 && column >= rows;
    return (row_major || column_major) && matrix.batch_stride >= 0;
}

static bool is_dense(const Matrix &m, int64_t rows, int64_t columns)
{
    return m.column_stride == 1 ? m.row_stride == columns : m.column_stride == rows;
}

static Matrix move_to(const Matrix &m, int64_t row, int64_t column, int64_t size)
{
    Matrix moved = m;
    int64_t elements = row * m.row_stride + column * m.column_stride;
    moved.data = static_cast<char *>(m.data) + elements * size;
    return moved;
}

// Copies rows x columns of `from` to `to`. Both are row-major, or both are column-major.
static void copy_matrix(const Matrix &from, const Matrix &to, int64_t rows, int64_t columns,
                        int64_t size)
{
    bool by_rows = from.column_stride == 1;
    int64_t count = by_rows ? rows : columns, bytes = (by_rows ? columns : rows) * size;
    int64_t from_step = (by_rows ? from.row_stride : from.column_stride) * size;
    int64_t to_step = (by_rows ? to.row_stride : to.column_stride) * size;
    const char *source = static_cast<const char *>(from.data);
    char *target = static_cast<char *>(to.data);
    for (; count > 0; count--, source += from_step, target += to_step)
        memcpy(target, source, (size_t)bytes);
}

// Returns a matrix in `room` without gaps, row-major or column-major as `m`.
static Matrix dense_in(void *room, const Matrix &m, int64_t rows, int64_t columns)
{
    bool by_rows = m.column_stride == 1;
    return {room, 0, by_rows ? columns : 1, by_rows ? 1 : rows};
}

// ---- the cut of one matrix ----------------------------------------------------------------------------------------

// oneDNN's kernels by the effect of a cut on bits; see the head of this file.
enum class Kernels { kAlike, kAmx, kOther };

static Kernels kernels_for(yoke_dtype dtype)
{
    constexpr unsigned kBf16 = dnnl_cpu_isa_avx512_core_bf16, kPlain = dnnl_cpu_isa_avx512_core;
    static const unsigned isa = dnnl_get_effective_cpu_isa();
    if (dtype == YOKE_F32) return (isa & kPlain) == kPlain ? Kernels::kAlike : Kernels::kOther;
    if (isa == kBf16) return Kernels::kAlike;
    return (isa & kBf16) == kBf16 ? Kernels::kAmx : Kernels::kOther;
}

// Largest depth with free cuts under AMX. Up to this depth, AMX kernels with full tiles give an element the same bits
// in all parts that use AMX: true for all of 1657 tried cuts, but not for all of 1680 cuts up to depth 1024.
constexpr int64_t kAmxDepth = 512;

static bool may_cut_anywhere(const Product &p)
{
    const Kernels kernels = kernels_for(p.dtype);
    if (kernels != Kernels::kAmx) return kernels == Kernels::kAlike;
    return p.k <= kAmxDepth && p.k % kAmxTile == 0 && std::min(p.m, p.n) >= kAmxUnit;
}

class Cut {
public:
    Cut(const Product &product, int64_t batch);

    int64_t parts() const { return parts_; }
    uint64_t room() const { return (uint64_t)(room_a_ + room_b_ + room_c_); }  // bytes of a part
    dnnl_status_t run(const Product &whole, int64_t part, char *room, bool *done) const;

private:
    // Returns the cost for a single thread of a product in `parts` parts along an axis, in multiplications.
    double cost(bool along_rows, int64_t parts) const;
    void choose_fixed();
    void choose_for_team(int64_t batch);
    void make_room();

    const Product &whole_;
    int64_t size_;
    bool along_rows_ = true;
    int64_t parts_ = 1, step_ = 0;  // rows or columns of a part
    int64_t room_a_ = 0, room_b_ = 0, room_c_ = 0;
};

// Returns the multiplications, plus the time of moved elements. Each part reorders its share of b for the kernel, and
// copies operands with gaps. It reads a in place.
double Cut::cost(bool along_rows, int64_t parts) const
{
    const Product &p = whole_;
    double a = (double)p.m * (double)p.k, b = (double)p.k * (double)p.n,
           c = (double)p.m * (double)p.n;
    double moved = along_rows ? (double)parts * b : b;
    bool cuts = parts > 1;
    bool a_in_one = is_dense(p.a, p.m, p.k), b_in_one = is_dense(p.b, p.k, p.n);
    if (along_rows) {
        if (!a_in_one || (cuts && p.a.column_stride != 1)) moved += a;
        if (!b_in_one) moved += b * (double)parts;
        if (p.c.row_stride != p.n) moved += c;
    } else {
        if (!a_in_one) moved += a * (double)parts;
        if (!b_in_one || (cuts && p.b.row_stride != 1)) moved += b;
        if (p.c.row_stride != p.n || (cuts && p.m > 1)) moved += c;
    }
    const double move =
        p.dtype == YOKE_F32 ? 16 : 32;  // multiplications in the time of moving one element
    return c * (double)p.k + move * moved;
}

// Chooses the cut by the shape alone: as many parts as cost a single thread little.
void Cut::choose_fixed()
{
    const Product &p = whole_;
    double work = (double)p.m * (double)p.n * (double)p.k, most = 1.125 * cost(true, 1);
    const double least = kernels_for(p.dtype) == Kernels::kAmx ? kFixedAmxWork : kFixedWork;
    for (int64_t parts = 2; parts <= kMostFixedParts && work >= least * (double)parts; parts *= 2)
        for (bool along_rows : {false, true})
            if (double each = cost(along_rows, parts); each <= most) {
                bool better = parts_ < parts || each < cost(along_rows_, parts);
                if (better) along_rows_ = along_rows;
                parts_ = parts;
            }
}

// Chooses the axis along which the team is done first, if the team is faster than a single thread.
void Cut::choose_for_team(int64_t batch)
{
    const Product &p = whole_;
    int64_t chunks = team_chunks(),
            most = (int64_t)((double)p.m * (double)p.n * (double)p.k / kPartWork);
    int64_t parts = std::min(chunks / std::gcd(chunks, batch), std::max<int64_t>(most, 1));
    if (parts == 1) return;
    double alone = cost(true, 1), rows = cost(true, parts), columns = cost(false, parts);
    double team = (double)std::min<int64_t>(parts, team_size());
    if (std::min(rows, columns) / team > 0.9 * alone) return;
    along_rows_ = rows <= columns;
    parts_ = parts;
}

Cut::Cut(const Product &product, int64_t batch)
    : whole_(product), size_(product.dtype == YOKE_F32 ? 4 : 2)
{
    const bool amx = kernels_for(product.dtype) == Kernels::kAmx;
    const int64_t unit = amx ? kAmxUnit : kCutUnit;
    if (may_cut_anywhere(product))
        choose_for_team(batch);
    else
        choose_fixed();
    int64_t length = along_rows_ ? product.m : product.n;
    int64_t units = (length + unit - 1) / unit;
    step_ = (units + parts_ - 1) / parts_ * unit;
    if (amx && length % step_ != 0 && length % step_ < kAmxTile)
        step_ = length;  // the rest would be no AMX
    parts_ = (length + step_ - 1) / step_;
    make_room();
}

void Cut::make_room()
{
    auto bytes = [&](int64_t rows, int64_t columns) {
        return (int64_t)aligned((uint64_t)(rows * columns * size_));
    };
    const Product &p = whole_;
    int64_t rows = along_rows_ ? std::min(step_, p.m) : p.m;
    int64_t columns = along_rows_ ? p.n : std::min(step_, p.n);
    if (!is_dense(p.a, rows, p.k)) room_a_ = bytes(rows, p.k);
    if (!is_dense(p.b, p.k, columns)) room_b_ = bytes(p.k, columns);
    if (rows > 1 && p.c.row_stride != columns) room_c_ = bytes(rows, columns);
}

dnnl_status_t Cut::run(const Product &whole, int64_t part, char *room, bool *done) const
{
    Product p = whole;
    int64_t row = along_rows_ ? part * step_ : 0, column = along_rows_ ? 0 : part * step_;
    p.batch = 1;
    if (along_rows_)
        p.m = std::min(step_, whole.m - row);
    else
        p.n = std::min(step_, whole.n - column);
    p.a = move_to(whole.a, row, 0, size_);
    p.b = move_to(whole.b, 0, column, size_);
    const Matrix target = move_to(whole.c, row, column, size_);
    p.c = target;
    if (p.m == 1) p.c.row_stride = p.n;
    if (p.bias) p.bias = static_cast<const char *>(p.bias) + column * size_;
    auto dense = [&](Matrix &m, int64_t rows, int64_t columns) {
        const Matrix from = m;
        m = dense_in(room, from, rows, columns);
        copy_matrix(from, m, rows, columns, size_);
    };
    if (room_a_) dense(p.a, p.m, p.k);
    room += room_a_;
    if (room_b_) dense(p.b, p.k, p.n);
    room += room_b_;
    if (room_c_) p.c = dense_in(room, target, p.m, p.n);
    dnnl_status_t status = compute_alone(p, done);
    if (room_c_ && *done) copy_matrix(p.c, target, p.m, p.n, size_);
    return status;
}

// ---- products by the team -----------------------------------------------------------------------------------------

// Computes large matrices: cuts each matrix, and runs every part of every matrix as a chunk of the team.
static yoke_status run_large(const yoke_launch *launch, const Product &product, Outcome &outcome)
{
    const int64_t slots = team_size(), size = product.dtype == YOKE_F32 ? 4 : 2;
    const Cut cut(product, product.batch);
    const int64_t count = product.batch * cut.parts();
    Scratch scratch(launch);
    if (cut.room())
        if (yoke_status status = scratch.reserve(cut.room() * (uint64_t)std::min(count, slots)))
            return status;
    run_parts(count, slots, [&](int64_t i, int slot) {
        int64_t matrix = i / cut.parts();
        Product each = product;
        for (Matrix *m : {&each.a, &each.b, &each.c})
            m->data = static_cast<char *>(m->data) + matrix * m->batch_stride * size;
        char *room = static_cast<char *>(scratch.data()) + (uint64_t)slot * cut.room();
        bool done = false;
        const dnnl_status_t status = cut.run(each, i % cut.parts(), room, &done);
        outcome.add(status, done);
    });
    return YOKE_OK;
}

// Runs small matrices with their own strides, so many at a time as are worth a thread.
static void run_small(const Product &product, double work, Outcome &outcome)
{
    const int64_t size = product.dtype == YOKE_F32 ? 4 : 2;
    const int64_t most = std::max<int64_t>(1, (int64_t)(kPartWork / work));
    run_parts((product.batch + most - 1) / most, INT32_MAX, [&](int64_t i, int) {
        Product some = product;
        some.batch = std::min(most, product.batch - i * most);
        for (Matrix *m : {&some.a, &some.b, &some.c})
            m->data = static_cast<char *>(m->data) + i * most * m->batch_stride * size;
        bool done = false;
        const dnnl_status_t status = compute_alone(some, &done);
        outcome.add(status, done);
    });
}

// Computes a product by the team. oneDNN supports the strides.
static yoke_status run(const yoke_launch *launch, const Product &p, bool *done)
{
    const double work = (double)p.m * (double)p.n * (double)p.k;
    Outcome outcome;
    if (work >= 2 * kPartWork) {
        if (yoke_status status = run_large(launch, p, outcome)) return status;
    } else {
        run_small(p, work, outcome);
    }
    if (int status = outcome.status.load()) return fail_product((dnnl_status_t)status, p);
    *done = outcome.done.load();
    return YOKE_OK;
}

yoke_status gemm_onednn(const yoke_launch *launch, const Product &product, bool *done)
{
    *done = false;
    // Without bf16 instructions, oneDNN emulates or refuses bf16. Yoke's own loops then multiply floats.
    if (product.dtype != YOKE_F32 && (product.dtype != YOKE_BF16 || !onednn_has_bf16()))
        return YOKE_OK;
    Product p = product;
    if (!normalise(p.a, p.batch, p.m, p.k) || !normalise(p.b, p.batch, p.k, p.n) ||
        !normalise(p.c, p.batch, p.m, p.n) || p.c.column_stride != 1)
        return YOKE_OK;
    if (is_too_deep(p)) return compute_deep(launch, p, run, done);
    return is_broken_depth(p) ? compute_even(launch, p, run, done) : run(launch, p, done);
}

}  // namespace yoke::cpu
