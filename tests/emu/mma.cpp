#include "tests/emu/mma.h"

#include <cmath>
#include <utility>

#include "tests/emu/block.h"

namespace yoke::emu {

void keep_copy(std::function<void()> copy)
{
    g_warp_lane->copies.all.push_back(std::move(copy));
}

void wait_for_copies()
{
    g_warp_lane->copies.arrive(g_warp_lane->copies.all.size());
}

void close_copies()
{
    Copies &copies = g_warp_lane->copies;
    copies.older = copies.closed;
    copies.closed = copies.all.size();
}

void wait_for_older_copies()
{
    g_warp_lane->copies.arrive(g_warp_lane->copies.older);
}

std::array<int64_t, kWarp> gather_rows(int64_t mine)
{
    std::array<int64_t, kWarp> rows;
    const Gathered all = gather("ldmatrix", Purpose::kMatrices, (uint64_t)mine);
    for (size_t i = 0; i < rows.size(); i++) rows[i] = (int64_t)all[i];
    return rows;
}

void multiply_add(const Factors &own, float (&sum)[4])
{
    Products &products = g_warp_lane->products;
    Factors &mine = products.factors[products.count++ % 2];
    mine = own;
    const Gathered all = gather("mma", Purpose::kProduct, (uint64_t)(uintptr_t)&mine);
    const auto of = [&](int lane) -> const Factors & {
        return *(const Factors *)(uintptr_t)all[(size_t)lane];
    };
    const int lane = warp_lane_number();
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4, below = i / 2, column = lane % 4 * 2 + i % 2;
        double total = 0;
        for (int k = 0; k < 16; k++) {
            // Lane 4 * row has the first two of each eight elements of the row; its neighbours have the next
            // elements.
            const int pair = k % 8 / 2, later = k / 8, one = k % 2;
            total += (double)of(row * 4 + pair).a[later * 4 + below * 2 + one] *
                     (double)of(column * 4 + pair).b[later * 2 + one];
        }
        sum[i] = (float)((double)sum[i] + total);
    }
}

}  // namespace yoke::emu
