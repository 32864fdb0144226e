// Defines a user's operation whose forward and backward functions are xtensor expressions.
#include <tally/tally.hpp>
#include <tally/xtensor.hpp>

using namespace tally;

Tensor64 squares(Tensor64 x) {
    using A = Array<double>;
    const auto forward = [](const A& in) { return array_of(xt::square(as_xtensor(in))); };
    const auto backward = [](GradInputs<A> to, const A& dy, const A&, const A& in) {
        if (to.needs_grad(0)) accumulate_into(to.into(0), as_xtensor(dy) * 2.0 * as_xtensor(in));
    };
    return custom("squares", forward, backward, std::move(x));
}

int main() {
    const Tensor64 x = parameter({1.0, -2.0, 3.0});
    sum(squares(x) + squares(x)).backward();
    return as_xtensor(x.grad()) == xt::xarray<double>({4, -8, 12}) ? 0 : 1;
}
