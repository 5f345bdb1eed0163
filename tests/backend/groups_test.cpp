// Required entries of a table, and groups of entries that must be either all there or all null.
#include "contract.h"

#include "core/backend/registry.h"

namespace yoke::test {

using Groups = Contract;
YOKE_ON_EVERY_BACKEND(Groups);

TEST_P(Groups, TheRegistryTakesTheTable)
{
    EXPECT_EQ(detail::refusal(GetParam().kind, *table_, "the table"), "");
}

TEST_P(Groups, ATableWithAHoleInAGroupIsRefusedByTheNameOfTheEntry)
{
    struct Hole {
        const char *name;
        void (*make)(yoke_backend &);
    };
    constexpr Hole holes[] = {
        {"vmm_map", [](yoke_backend &t) { t.vmm_map = nullptr; }},
        {"host_free", [](yoke_backend &t) { t.host_free = nullptr; }},
        {"stream_query", [](yoke_backend &t) { t.stream_query = nullptr; }},
        {"event_elapsed", [](yoke_backend &t) { t.event_elapsed = nullptr; }},
        {"alloc", [](yoke_backend &t) { t.alloc = nullptr; }},
        {"build_info", [](yoke_backend &t) { t.build_info = nullptr; }},
    };
    for (const Hole &hole : holes) {
        yoke_backend table = *table_;
        hole.make(table);
        const std::string why = detail::refusal(GetParam().kind, table, "the table");
        EXPECT_NE(why.find(hole.name), std::string::npos) << hole.name << ": " << why;
    }
}

TEST_P(Groups, ATableWithoutAWholeGroupIsTaken)
{
    yoke_backend table = *table_;
    table.host_alloc = nullptr;
    table.host_free = nullptr;
    table.vmm_granularity = nullptr;
    table.vmm_reserve = nullptr;
    table.vmm_release = nullptr;
    table.vmm_create = nullptr;
    table.vmm_destroy = nullptr;
    table.vmm_map = nullptr;
    table.vmm_unmap = nullptr;
    EXPECT_EQ(detail::refusal(GetParam().kind, table, "the table"), "");
}

TEST_P(Groups, AHostOfAnotherContractIsRefused)
{
    yoke_host other = detail::host_table();
    other.abi = YOKE_BACKEND_ABI + 1;
    other.set_error = [](yoke_status status, int64_t, const char *message) {
        ++told().errors;
        told().status = status;
        told().message = message;
        return status;
    };
    const yoke_backend *unset = nullptr;
    expect_failure(YOKE_E_UNSUPPORTED, GetParam().get(&other, &unset), "yoke_backend_get");
    EXPECT_EQ(unset, nullptr);
}

}  // namespace yoke::test
