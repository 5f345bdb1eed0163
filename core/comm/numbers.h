// numbers.h: numbers of the core that ranks exchange, as tensors in host memory.
#pragma once

#include "core/select/select.h"
#include "core/tensor/tensor.h"

#include <type_traits>
#include <vector>

namespace yoke {

template <class T>
Tensor tensor_of(const std::vector<T> &numbers, const char *call)
{
    static_assert(std::is_same_v<T, int64_t> || std::is_same_v<T, double>);
    const int64_t shape[] = {std::ssize(numbers)};
    Tensor made = make_tensor(open_device("cpu"), std::is_same_v<T, double> ? YOKE_F64 : YOKE_I64,
                              shape, call);
    copy_from_host(*made, numbers.data(), made->nbytes(), call);
    return made;
}

template <class T>
std::vector<T> numbers_of(const Tensor &tensor, const char *call)
{
    std::vector<T> numbers(static_cast<size_t>(tensor->numel));
    copy_to_host(*tensor, numbers.data(), tensor->nbytes(), call);
    return numbers;
}

}  // namespace yoke
