#include "core/comm/dump_failure.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/signals.h"
#include "core/state/files.h"

#include <memory>
#include <system_error>
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
    log(LogLevel::kWarn, "the group's last calls could not be dumped (YOKE_COMM_DUMP): %s",
        failure.what());
}

}  // namespace

void write_dump(const Dump &dump, const std::string &path)
{
    const std::string text = dump_text(dump);
    NewFile file("dump", path);
    file.write(text.data(), text.size());
    file.commit();
}

std::shared_future<void> FailureDump::written()
{
    return is_wanted() ? written_.get_future().share() : std::shared_future<void>();
}

void FailureDump::write() noexcept
{
    if (!is_wanted()) return;
    const auto made = std::make_shared<FailureDump>(std::move(*this));
    const auto write_it = [made] {
        try_to_write(made->dump_, made->folder_);
        made->written_.set_value();
    };
    try {
        const HostSignalsBlocked blocked;
        std::thread(write_it).detach();
    } catch (const std::system_error &) {  // the system gives no thread
        write_it();
    }
}

}  // namespace yoke
