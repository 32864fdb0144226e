// Uses a device with a defective module. modules_test.py selects the module and checks the output.
#include <fstream>
#include <iostream>
#include <string>

#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/device/backend.hpp"

namespace {

float sum_on_the_cpu() {
    const tally::Tensor x(tally::Array<float>{1, 2, 3});
    return tally::sum(x * x).item();
}

bool has_loaded_a_module() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find(".so") != std::string::npos && line.find("/tally_") != std::string::npos) return true;
    return false;
}

}  // namespace

int main() {
    using tally::Device;
    std::cout << "cpu: " << sum_on_the_cpu() << '\n';
    std::cout << "waits: " << tally::detail::waits(Device::cuda) << '\n';
    std::cout << "loaded before it is asked for: " << has_loaded_a_module() << '\n';
    std::cout << "absent: " << tally::backend::unavailable_reason() << '\n';
    try {
        const auto there = tally::Array<float>{1, 2, 3}.to(Device::cuda);
        std::cout << "there: " << there.to(Device::cpu).to_vector().size() << '\n';
    } catch (const tally::Error& error) {
        std::cout << "error: " << error.what() << '\n';
    }
    std::cout << "loaded: " << has_loaded_a_module() << '\n';
    std::cout << "cpu: " << sum_on_the_cpu() << '\n';
}
