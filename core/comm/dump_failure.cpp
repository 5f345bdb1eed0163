#include "core/comm/dump_failure.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/start_thread.h"
#include "core/launch/error_file.h"
#include "core/state/new_folder.h"

#include <atomic>
#include <exception>
#include <thread>
#include <utility>

namespace yoke {

namespace {

void try_to_write(const Dump &dump, const std::string &folder) noexcept
try {
    make_folders("dump", folder);
    write_dump(dump, format("%s/rank-%d-of-%d-group-%llx.json", folder.c_str(), dump.rank,
                            dump.size(), static_cast<unsigned long long>(dump.group)));
} catch (const std::exception &failure) {
    log_no_dump(failure);
}

// Dumps of this process that are not written yet.
std::atomic<int> unwritten{0};

}  // namespace

void log_no_dump(const std::exception &why) noexcept
{
    log(LogLevel::kWarn, "the group's last calls could not be dumped (YOKE_COMM_DUMP): %s",
        why.what());
}

void write_dump(const Dump &dump, const std::string &path)
{
    const std::string text = dump_text(dump);
    NewFile file("dump", path);
    file.write(text.data(), text.size());
    file.commit();
}

FailureDump::FailureDump(const char *folder, Dump dump)
    : writing_(new Writing{folder, std::move(dump)})
{
}

std::shared_future<void> FailureDump::written() const
{
    return writing_ ? writing_->done.get_future().share() : std::shared_future<void>();
}

void FailureDump::write() const noexcept
{
    if (!writing_) return;
    ++unwritten;
    const auto write_it = [writing = writing_] {
        try_to_write(writing->dump, writing->folder);
        writing->done.set_value();
        if (--unwritten == 0) tell_launcher_of_dumps();
    };
    if (!start_detached_thread(write_it).empty()) write_it();
}

}  // namespace yoke
