// Waits that the host program ends: core/base/interrupt.cpp.
#include "core/base/interrupt.h"

#include "core/base/work.h"
#include "core/store/socket.h"
#include "core/store/store_file.h"
#include "core/store/store_hash.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

namespace yoke::test {
namespace {

// Host program that ends the wait at the second question.
class Host {
public:
    Host() { set_interrupt_hook(hear, this, nullptr); }
    ~Host() { set_interrupt_hook(nullptr, nullptr, nullptr); }
    int asked() const { return asked_; }

private:
    static int32_t hear(void *user) { return ++static_cast<Host *>(user)->asked_ >= 2; }
    std::atomic<int> asked_{0};
};

constexpr double kLong = 20;

void expect_interrupted(const std::function<void()> &wait)
{
    const Host host;
    const Interruptible call("init");
    expect_error(YOKE_E_CANCELLED, {"init", "interrupted"}, wait);
    EXPECT_EQ(host.asked(), 2);
    sleep_until(Deadline::after(0.3));  // the call has ended, so the hook is not asked again
    EXPECT_EQ(host.asked(), 2);
    expect_error(YOKE_E_CANCELLED, {"init"}, [&] { call.check(); });
}

TEST(Interrupt, EndsWaitsForATable)
{
    HashStore table;
    expect_interrupted([&] { (void)table.get("never", Deadline::after(kLong)); });
    const std::string path = testing::TempDir() + "interrupt." + std::to_string(getpid());
    const auto file = open_file_store(path, "run", Deadline::after(kLong));
    expect_interrupted([&] { (void)file->get("never", Deadline::after(kLong)); });
    file->set("a", "1", Deadline::after(kLong));
    EXPECT_EQ(file->get("a", Deadline::after(kLong)), "1");
}

TEST(Interrupt, EndsWaitsForAConnectionAndForWork)
{
    const Socket listening = Socket::listen(SocketAddress::any(AF_INET, 0));
    const Socket here = Socket::connect(listening.local(), Deadline::after(kLong));
    char byte = 0;
    expect_interrupted([&] { (void)receive_all(here, &byte, 1, Deadline::after(kLong)); });
    const Ref<Work> work = Work::begin(1);
    expect_interrupted([&] { (void)work->wait(-1); });
    expect_interrupted([&] { (void)work->wait(kLong); });
    EXPECT_FALSE(work->is_done());
    work->finish(nullptr);
    EXPECT_TRUE(work->wait(-1));
}

TEST(Interrupt, AsksNobodyOutsideOfACallThatSaysSo)
{
    const Host host;
    HashStore table;
    const Deadline soon = Deadline::after(0.25);
    const auto wait = [&] { (void)table.get("never", soon); };
    expect_error(YOKE_E_TIMEOUT, {"never"}, wait);
    const Interruptible call("init");
    std::thread([&] { expect_error(YOKE_E_TIMEOUT, {"never"}, wait); }).join();
    {
        const Undisturbed callback;
        EXPECT_FALSE(Interruptible::is_open());
        sleep_until(Deadline::after(0.25));
    }
    EXPECT_EQ(host.asked(), 0);
}

TEST(Interrupt, AsksWithoutALock)
{
    HashStore table;
    struct Setting {
        HashStore &table;
        static int32_t hear(void *user)
        {
            static_cast<Setting *>(user)->table.set("late", "", Deadline::after(0));
            return 0;
        }
    } setting{table};
    set_interrupt_hook(Setting::hear, &setting, nullptr);
    const Interruptible call("init");
    EXPECT_EQ(table.get("late", Deadline::after(kLong)), "");
    set_interrupt_hook(nullptr, nullptr, nullptr);
}

}  // namespace
}  // namespace yoke::test
