// expect_error.h: checks the status of a failing call, and every part that its message must name.
#pragma once

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace yoke::test {

template <class Call>
void expect_error(yoke_status status, std::initializer_list<const char *> parts, const Call &call)
{
    try {
        call();
    } catch (const Error &error) {
        EXPECT_STREQ(status_name(error.status()), status_name(status)) << error.what();
        for (const char *part : parts)
            EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
                << "no '" << part << "' in: " << error.what();
        return;
    }
    ADD_FAILURE() << "no error was raised; expected " << status_name(status);
}

}  // namespace yoke::test
