// Logs and configuration: callbacks are added, receive lines and are removed while other threads log. Each is dropped
// once, after its last line.
#include "scene.h"

#include <cstring>
#include <deque>
#include <mutex>
#include <string>

namespace hostile {

namespace {

struct Listener {
    std::atomic<int64_t> lines{0}, drops{0}, id{0};
    std::string own;  // text of a line for this listener
    std::atomic<int64_t> own_lines{0};
    bool leaves = false;  // removed by the first line
};

void listen(void *user, int32_t level, const char *message)
{
    auto &listener = *static_cast<Listener *>(user);
    TRUE(listener.drops == 0 && level >= YOKE_LOG_ERROR && level <= YOKE_LOG_DEBUG);
    ++listener.lines;
    if (!listener.own.empty() && std::strstr(message, listener.own.c_str())) ++listener.own_lines;
    // No lock is held here, so a callback may make any call.
    const char *value = nullptr;
    OK(yoke_config_get("YOKE_LOG", &value));
    if (const int64_t id = listener.leaves ? listener.id.exchange(0) : 0)
        OK(yoke_log_remove_callback(id));
}

void drop(void *user)
{
    ++static_cast<Listener *>(user)->drops;
}

// Causes a log line: a device opened on the CPU is reported once for each spec, and this spec is new.
void speak(const std::string &spec)
{
    DeviceHeld device;
    OK(yoke_device_open(spec.c_str(), device.out()));
}

class Logs final : public Scene {
public:
    void piece(Dice &dice) override
    {
        static std::atomic<int64_t> spoken{0};
        const std::string spec = "auto:min_free=" + std::to_string(++spoken) + "B";
        Listener &listener = next();
        switch (dice.below(6)) {
            case 0:
                OK(yoke_log_set_callback(listen, &listener, drop));
                return;
            case 1: {  // the listener removes itself, or is removed
                int64_t id = 0;
                listener.leaves = true;
                OK(yoke_log_add_callback(listen, &listener, drop, &id));
                listener.id = id;
                speak(spec);
                if (const int64_t mine = listener.id.exchange(0))
                    OK(yoke_log_remove_callback(mine));
                return;
            }
            case 2: {
                int64_t id = 0;
                listener.own = "'" + spec + "'";
                OK(yoke_log_add_callback(listen, &listener, drop, &id));
                speak(spec);
                OK(yoke_log_remove_callback(id));
                TRUE(listener.own_lines == 1);
                TRUE(yoke_log_remove_callback(id) == YOKE_E_VALUE);
                return;
            }
            case 3:
                listener.drops = 1;  // not added in this case
                speak(spec);
                return;
            default: {
                int64_t id = 0;
                OK(yoke_log_add_callback(listen, &listener, drop, &id));
                OK(yoke_log_remove_callback(id));
            }
        }
    }

    void check() override
    {
        OK(yoke_log_set_callback(nullptr, nullptr, nullptr));
        for (const Listener &listener : listeners_)
            if (listener.drops != 1)
                wrong(__FILE__, __LINE__, "a callback was dropped %lld times",
                      static_cast<long long>(listener.drops.load()));
    }

private:
    Listener &next()
    {
        const std::lock_guard lock(mutex_);
        return listeners_.emplace_back();
    }

    std::mutex mutex_;
    std::deque<Listener> listeners_;
};

// A key that only the CUDA module uses. As long as the module is not loaded, the key may be set.
class Settings final : public Scene {
public:
    void piece(Dice &dice) override
    {
        static constexpr const char *kKey = "YOKE_CUBLASLT_AUTOTUNE_FILE";
        const char *value = nullptr;
        switch (dice.below(4)) {
            case 0:
                IN_ORDER(yoke_config_set(kKey, kValues[dice.below(4)]));
                break;
            case 1:
                TRUE(yoke_config_set("YOKE_NO_SUCH_KEY", "1") == YOKE_E_VALUE);
                break;
            case 2:
                yoke_get_num_threads();
                TRUE(yoke_config_set("YOKE_NUM_THREADS", "2") == YOKE_E_STATE);
                break;
            default:
                if (OK(yoke_config_get(kKey, &value)))
                    TRUE(!value || !std::strncmp(value, "/nowhere/", 9));
        }
    }

private:
    static constexpr const char *kValues[] = {"/nowhere/a", "/nowhere/b", "/nowhere/c", nullptr};
};

template <class T>
std::unique_ptr<Scene> make()
{
    return std::make_unique<T>();
}

}  // namespace

std::span<const SceneKind> setting_scenes()
{
    static constexpr SceneKind kScenes[] = {
        {"logs", make<Logs>, 40},
        {"settings", make<Settings>, 100},
    };
    return kScenes;
}

}  // namespace hostile
