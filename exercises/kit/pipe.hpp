// PipeRun runs the stages of a pipe, each as soon as its inputs are ready; checks of schedules measure it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace exercise {

struct PipeWork {
    char what;  // F, B, and W if backward has two parts
    int micro;
    std::string to_text() const { return std::string(1, what) + "(" + std::to_string(micro) + ")"; }
};

class PipeRun {
public:
    int time = 0;
    std::vector<double> kept;  // per stage, the most micro-batches between F and the last of `kinds`
    std::string fault;

    PipeRun(const std::vector<std::vector<PipeWork>>& orders, int micros, const std::string& kinds)
        : kept(orders.size()), orders_(orders), next_(orders.size()), holds_(orders.size()) {
        done_.assign(256, std::vector<std::vector<int>>(
                              orders.size(), std::vector<int>(static_cast<std::size_t>(micros), never)));
        for (std::size_t s = 0; s < orders.size() && fault.empty(); ++s) look_at(s, micros, kinds);
        while (fault.empty() && a_unit_passes(kinds.back())) ++time;
        for (std::size_t s = 0; s < orders.size() && fault.empty(); ++s)
            if (next_[s] < orders[s].size())
                fault = "after " + std::to_string(time) +
                        " units of time all stages wait for each other: the next work of stage " +
                        std::to_string(s) + " is " + orders[s][next_[s]].to_text();
    }

private:
    static constexpr int never = 1 << 30;

    // Checks that a stage does each piece of work once, and nothing else.
    void look_at(std::size_t s, int micros, const std::string& kinds) {
        const std::string stage = "stage " + std::to_string(s);
        for (const PipeWork& work : orders_[s])
            if (work.micro < 0 || work.micro >= micros || kinds.find(work.what) == std::string::npos)
                fault = stage + " returns " + work.to_text() + ", but the micro-batches are 0 to " +
                        std::to_string(micros - 1);
        for (const char what : kinds)
            for (int micro = 0; micro < micros && fault.empty(); ++micro) {
                const auto times = std::count_if(
                    orders_[s].begin(), orders_[s].end(),
                    [&](const PipeWork& work) { return work.what == what && work.micro == micro; });
                if (times != 1)
                    fault = stage + " does " + PipeWork{what, micro}.to_text() + " " + std::to_string(times) +
                            " times";
            }
    }

    bool is_ready(std::size_t s, const PipeWork& work) const {
        const auto done = [&](char what, std::size_t stage) {
            return done_[static_cast<unsigned char>(what)][stage][static_cast<std::size_t>(work.micro)] <=
                   time;
        };
        if (work.what == 'F') return s == 0 || done('F', s - 1);
        if (work.what == 'W') return done('B', s);
        return done('F', s) && (s + 1 == orders_.size() || done('B', s + 1));
    }

    bool a_unit_passes(char last) {
        bool any = false;
        for (std::size_t s = 0; s < orders_.size(); ++s) {
            if (next_[s] == orders_[s].size()) continue;
            const PipeWork work = orders_[s][next_[s]];
            if (!is_ready(s, work)) continue;
            done_[static_cast<unsigned char>(work.what)][s][static_cast<std::size_t>(work.micro)] = time + 1;
            holds_[s] += work.what == 'F';
            kept[s] = std::max<double>(kept[s], holds_[s]);
            holds_[s] -= work.what == last;
            ++next_[s];
            any = true;
        }
        return any;
    }

    const std::vector<std::vector<PipeWork>>& orders_;
    std::vector<std::size_t> next_;
    std::vector<int> holds_;
    std::vector<std::vector<std::vector<int>>> done_;  // time by kind, stage and micro-batch
};

}  // namespace exercise
