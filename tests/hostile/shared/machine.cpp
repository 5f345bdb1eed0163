// Calls about the machine: snapshots read by all threads while new snapshots are taken, and devices opened and
// switched off.
#include "scene.h"

#include <cmath>
#include <cstring>
#include <string>

namespace hostile {

namespace {

bool same(const char *a, const char *b)
{
    return a && b && std::strcmp(a, b) == 0;
}

// Two threads must read equal texts from an inventory, in any order; meanwhile threads take new inventories.
class Inventories final : public Scene {
public:
    Inventories()
    {
        OK(yoke_inventory_take(shared_.out()));
        count_ = yoke_inventory_count(shared_);
    }

    void piece(Dice &dice) override
    {
        const char *text = nullptr;
        switch (dice.below(8)) {
            case 0: {
                InventoryHeld own;
                if (OK(yoke_inventory_take(own.out()))) TRUE(yoke_inventory_count(own) == count_);
                break;
            }
            case 1:
                if (OK(yoke_inventory_fact(shared_, "driver", &text))) TRUE(text != nullptr);
                break;
            case 2: {
                const char *matrix = yoke_inventory_topology(shared_);
                TRUE(matrix && same(matrix, yoke_inventory_topology(shared_)));
                break;
            }
            case 3:
                yoke_inventory_release(yoke_inventory_retain(shared_));
                break;
            case 4:
                TRUE(yoke_inventory_network_count(shared_) >= 0);
                break;
            default:
                if (count_) card(static_cast<int32_t>(dice.below(static_cast<uint64_t>(count_))));
        }
    }

private:
    void card(int32_t index)
    {
        yoke_card_info info{};
        yoke_card_link link{};
        yoke_card_process process{};
        info.struct_size = sizeof info;
        link.struct_size = sizeof link;
        process.struct_size = sizeof process;
        if (OK(yoke_inventory_card(shared_, index, &info))) TRUE(info.index == index);
        if (OK(yoke_inventory_link(shared_, index, index, &link)))
            TRUE(link.path == YOKE_PATH_SELF);
        if (info.process_count > 0) OK(yoke_inventory_process(shared_, index, 0, &process));
    }

    InventoryHeld shared_;
    int32_t count_ = 0;
};

class Explanations final : public Scene {
public:
    Explanations()
    {
        OK(yoke_explain("auto", shared_.out()));
        count_ = yoke_explanation_count(shared_);
        TRUE(count_ >= 1);
    }

    void piece(Dice &dice) override
    {
        yoke_candidate candidate{};
        candidate.struct_size = sizeof candidate;
        switch (dice.below(6)) {
            case 0: {
                ExplanationHeld own;
                if (OK(yoke_explain(dice.below(2) ? "auto" : "cpu", own.out())))
                    TRUE(yoke_explanation_count(own) >= 1);
                break;
            }
            case 1:
                TRUE(yoke_explanation_visible(shared_) && yoke_explanation_problem(shared_));
                break;
            case 2:
                TRUE(yoke_inventory_count(yoke_explanation_inventory(shared_)) >= 0);
                break;
            case 3: {
                DeviceHeld chosen;
                int32_t count = 0;
                if (OK(yoke_select("auto:kind=cpu", 1, chosen.out(), 1, &count)))
                    TRUE(count == 1 && same(yoke_device_kind(chosen), "cpu"));
                break;
            }
            default: {
                const auto index = static_cast<int32_t>(dice.below(static_cast<uint64_t>(count_)));
                if (OK(yoke_explanation_get(shared_, index, &candidate)))
                    TRUE(index != 0 || candidate.chosen == 0);
            }
        }
    }

private:
    ExplanationHeld shared_;
    int32_t count_ = 0;
};

// Reports without probes, which would start processes.
class Reports final : public Scene {
public:
    Reports()
    {
        OK(yoke_doctor(YOKE_DOCTOR_REDACT, 0, shared_.out()));
        count_ = yoke_report_count(shared_);
        TRUE(count_ > 0);
    }

    void piece(Dice &dice) override
    {
        if (dice.below(16) == 0) {
            ReportHeld own;
            if (OK(yoke_doctor(dice.below(2) ? YOKE_DOCTOR_REDACT : 0, 0, own.out())))
                TRUE(yoke_report_count(own) == count_);
            return;
        }
        yoke_check check{};
        check.struct_size = sizeof check;
        const auto index = static_cast<int32_t>(dice.below(static_cast<uint64_t>(count_)));
        if (OK(yoke_report_check(shared_, index, &check)))
            TRUE(check.id && *check.id && check.title && check.evidence && check.remedy);
        TRUE(yoke_report_exit_code(shared_) != 2);
    }

private:
    ReportHeld shared_;
    int32_t count_ = 0;
};

class Devices final : public Scene {
public:
    Devices() { OK(yoke_device_open("cpu", cpu_.out())); }

    void piece(Dice &dice) override
    {
        DeviceHeld opened;
        int64_t free_bytes = 0, total = 0;
        int32_t count = 0;
        yoke_card_info card{};
        card.struct_size = sizeof card;
        switch (dice.below(12)) {
            case 0:
                if (OK(yoke_device_open("cpu", opened.out()))) TRUE(opened == cpu_);
                break;
            case 1:
                if (OK(yoke_device_get("cpu", 0, opened.out()))) TRUE(opened == cpu_);
                break;
            case 2:
                if (OK(yoke_device_count("cpu", &count))) TRUE(count == 1);
                break;
            case 3:
                TRUE(yoke_why_unavailable("cuda") != nullptr);
                TRUE(std::strlen(yoke_why_unavailable("cuda")) < 100000);
                break;
            case 4:
                TRUE(std::strstr(yoke_build_info(), "cpu"));
                break;
            case 5:
                if (OK(yoke_device_memory(cpu_, &free_bytes, &total))) TRUE(total > 0);
                break;
            case 6:
                if (OK(yoke_device_sample(cpu_, &card))) TRUE(card.memory_total > 0);
                break;
            case 7:
                if (OK(yoke_device_card(cpu_, &card)))
                    TRUE(same(card.name, yoke_device_name(cpu_)));
                break;
            case 8:  // counts: no thread undoes another thread's request
                if (OK(yoke_disable("cuda"))) {
                    TRUE(yoke_is_available("cuda") == 0);
                    OK(yoke_enable("cuda"));
                }
                break;
            case 9:
                OK(yoke_set_device(cpu_));
                if (OK(yoke_current_device(opened.out()))) TRUE(opened == cpu_);
                break;
            case 10:
                OK(yoke_set_allow_tf32(0));
                TRUE(yoke_get_allow_tf32() == 0);
                break;
            default:
                OK(yoke_device_synchronize(cpu_));
                yoke_device_release(yoke_device_retain(cpu_));
        }
    }

private:
    DeviceHeld cpu_;
};

template <class T>
std::unique_ptr<Scene> make()
{
    return std::make_unique<T>();
}

}  // namespace

std::span<const SceneKind> machine_scenes()
{
    static constexpr SceneKind kScenes[] = {
        {"inventories", make<Inventories>, 30},
        {"explanations", make<Explanations>, 20},
        {"reports", make<Reports>, 10},
        {"devices", make<Devices>, 50},
    };
    return kScenes;
}

}  // namespace hostile
