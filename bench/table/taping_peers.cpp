// Libraries that record one number at a time, on the network of numbers; each where it is installed, or where
// TALLY_PEERS names the folder of its headers.
#include <memory>
#include <utility>

#include "bench/table/rows.hpp"

#ifdef TALLY_WITH_ADOLC
#include <adolc/adolc.h>
#endif
#ifdef TALLY_WITH_CODIPACK
#include <codi.hpp>
#endif
#ifdef TALLY_WITH_CPPAD
#include <cppad/cppad.hpp>
#endif
#ifdef TALLY_WITH_AUTODIFF
#include <autodiff/reverse/var.hpp>
#endif
#ifdef TALLY_WITH_ADEPT
#include <adept.h>
#endif
#ifdef TALLY_WITH_STAN
#include <stan/math/rev.hpp>
#endif

namespace tally::bench {
namespace {

// A peer makes its gradients anew in each run, as a program would whose graph may change.
template <class Gradients> [[maybe_unused]] void add_peer(Row& row, const char* name, Gradients gradients) {
    row.sides.push_back({name, Role::peer, [gradients]() mutable { gradients(); },
                         [gradients]() mutable { return Numbers{gradients()}; }});
}

}  // namespace

void add_taping_peers([[maybe_unused]] Row& row, [[maybe_unused]] const ScalarNetwork& network) {
#ifdef TALLY_WITH_ADOLC
    add_peer(row, "ADOL-C", [network, found = std::vector<double>(network.weights.size())]() mutable {
        trace_on(1);
        std::vector<adouble> weights(network.weights.size());
        for (std::size_t i = 0; i < weights.size(); ++i) weights[i] <<= network.weights[i];
        double y = 0;
        network(weights, adouble(network.a), adouble(network.b)) >>= y;
        trace_off();
        ::gradient(1, static_cast<int>(weights.size()), network.weights.data(), found.data());
        return found;
    });
#endif
#ifdef TALLY_WITH_CODIPACK
    add_peer(row, "CoDiPack", [network, found = std::vector<double>()]() mutable {
        using Real = codi::RealReverse;
        auto& tape = Real::getTape();
        tape.reset();
        tape.setActive();
        std::vector<Real> weights(network.weights.begin(), network.weights.end());
        for (Real& w : weights) tape.registerInput(w);
        Real y = network(weights, Real(network.a), Real(network.b));
        tape.registerOutput(y);
        tape.setPassive();
        y.setGradient(1);
        tape.evaluate();
        found.clear();
        for (const Real& w : weights) found.push_back(w.getGradient());
        return found;
    });
#endif
#ifdef TALLY_WITH_CPPAD
    add_peer(row, "CppAD", [network] {
        using Real = CppAD::AD<double>;
        std::vector<Real> weights(network.weights.begin(), network.weights.end());
        CppAD::Independent(weights);
        const std::vector<Real> y{network(weights, Real(network.a), Real(network.b))};
        CppAD::ADFun<double> recorded;
        recorded.Dependent(weights, y);
        recorded.Forward(0, network.weights);
        return recorded.Reverse(1, std::vector<double>{1});
    });
#endif
#ifdef TALLY_WITH_AUTODIFF
    add_peer(row, "autodiff", [network] {
        using autodiff::var;
        std::vector<var> weights(network.weights.begin(), network.weights.end());
        const var y = network(weights, var(network.a), var(network.b));
        std::vector<double> found(weights.size());
        for (std::size_t i = 0; i < found.size(); ++i) weights[i].expr->bind_value(&found[i]);
        y.expr->propagate(1.0);
        for (var& w : weights) w.expr->bind_value(nullptr);
        return found;
    });
#endif
#ifdef TALLY_WITH_ADEPT
    add_peer(row, "Adept", [network, stack = std::make_shared<adept::Stack>()] {
        std::vector<adept::adouble> weights(network.weights.begin(), network.weights.end());
        const adept::adouble a = network.a, b = network.b;
        stack->new_recording();
        adept::adouble y = network(weights, a, b);
        y.set_gradient(1.0);
        stack->compute_adjoint();
        std::vector<double> found;
        for (const adept::adouble& w : weights) found.push_back(w.get_gradient());
        return found;
    });
#endif
#ifdef TALLY_WITH_STAN
    add_peer(row, "Stan Math", [network] {
        const std::vector<stan::math::var> weights(network.weights.begin(), network.weights.end());
        network(weights, stan::math::var(network.a), stan::math::var(network.b)).grad();
        std::vector<double> found;
        for (const stan::math::var& w : weights) found.push_back(w.adj());
        stan::math::recover_memory();
        return found;
    });
#endif
}

std::vector<std::pair<std::string, bool>> taping_peers() {
    std::vector<std::pair<std::string, bool>> all{{"ADOL-C", false}, {"CoDiPack", false},
                                                  {"CppAD", false},  {"autodiff", false},
                                                  {"Adept", false},  {"Stan Math", false}};
#ifdef TALLY_WITH_ADOLC
    all[0].second = true;
#endif
#ifdef TALLY_WITH_CODIPACK
    all[1].second = true;
#endif
#ifdef TALLY_WITH_CPPAD
    all[2].second = true;
#endif
#ifdef TALLY_WITH_AUTODIFF
    all[3].second = true;
#endif
#ifdef TALLY_WITH_ADEPT
    all[4].second = true;
#endif
#ifdef TALLY_WITH_STAN
    all[5].second = true;
#endif
    return all;
}

}  // namespace tally::bench
