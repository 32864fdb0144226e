// Lesson 35: ranks send once for each update. Exact sums have the same bits for any number of ranks.
#include "shared_updates.hpp"

using AllReduce = ProcessGroup::AllReduce;

LESSON(whole_number("ranks", "processes that share the batch", 3, 2, 6)) {  // default 3; 2 to 6
    const int p = setting("ranks");

    step("The ranks can add their gradients once in an update, or after each micro-batch.");
    note("PyTorch's DistributedDataParallel adds them after each micro-batch, unless you call no_sync().");
    code(3);
    const auto once = [](int n, auto& window, auto row, auto v) {
        for (int k = 0; k < n; ++k) window.add(Loss(matmul(row, v)));
        window.finish();  // one all-reduce
    };
    code(3);  // v.backward(g) adds g to v.grad
    const auto each_time = [](int n, auto& group, auto row, auto v) {
        for (int k = 0; k < n; ++k) {
            v.backward(group.all_reduce(own_gradient(row, v)));
        }
    };
    const auto sent = on_ranks([&](ProcessGroup& here) {  // runs on each rank, and returns all results
        const Tensor row = slice(toy::rows(), 0, here.rank(), here.rank() + 1);
        std::vector<int> bytes_sent;
        for (const int n : {1, 2, 8, 16}) {
            const Tensor v = zeros({3});
            DataParallel<real> ranks(here);
            Sgd<real> sgd({v}, {.learning_rate = 1});
            Window<real> window(sgd, {}, &ranks);
            const auto start = here.sent().sum_bytes;  // bytes that this rank has sent for sums
            once(n, window, row, v);
            const auto middle = here.sent().sum_bytes;
            each_time(n, here, row, v);
            for (const auto part : {middle - start, here.sent().sum_bytes - middle})
                bytes_sent.push_back(int(part));
        }
        return bytes_sent;
    });
    const auto by_all = [&](int i) {
        int sum = 0;
        for (const std::vector<int>& of_rank : sent) sum += of_rank[i];
        return sum;
    };
    const int bytes = 3 * sizeof(real), one = by_all(1);  // of one micro-batch, each time
    note("w has three floats, or {} bytes. Adding up w.grad of {} ranks sends {} bytes.", bytes, p, one);
    note("P ranks send 2 (P - 1) = {} times the size of w: P - 1 gradients, then P - 1 sums.", one / bytes);

    ask("bytes", "p", p, "one", one, "right", 8 * one, "own", 8 * bytes, "all", 8 * p * one);
    auto bytes_of = table({"micro-batches", "once, bytes", "each time, bytes"});
    for (const int i : {0, 1, 2, 3})
        bytes_of.row(std::array{1, 2, 8, 16}[i], by_all(2 * i), by_all(2 * i + 1));  // once, each time
    note("The table counts the bytes of gradients. The ranks also send a few bytes of counts and checks.");

    // An update with the micro-batches k for which is_own(k) is true. Returns 1000 weights.
    const auto update = [](const auto& is_own, Sum how, DataParallel<real>* ranks) {
        const Tensor v = zeros({1000});
        Sgd<real> sgd({v}, {.learning_rate = 1});
        Window<real> window(sgd, {.sum = how}, ranks);
        for (int k = 0; k < 24; ++k)  // all ranks together add 24 micro-batches
            if (is_own(k)) window.add({sum(v * thousand(k)), one_item()});  // gradient thousand(k), count 1
        window.finish();
        return v.value().to_vector();
    };
    const auto on_all = [&](const auto& rank_of, Sum how, AllReduce reduce) {
        return on_ranks([&](ProcessGroup& here) {
            DataParallel<real> ranks(here, {.reduce = reduce});
            return update([&](int k) { return rank_of(k) == here.rank(); }, how, &ranks);
        });
    };
    const auto in_blocks = [&](int k) { return k * p / 24; };
    const auto in_turn = [&](int k) { return k % p; };
    const auto in_turn_without_last = [&](int k) { return k % (p - 1); };  // the last rank gets none
    const auto all = [](int) { return true; };
    const auto alone = update(all, Sum::running, nullptr);

    ask("other-bits", "p", p);
    auto bits = table({"weights with other bits", "last rank", "one process", "other order"});  // than rank 0
    const auto compare = [&](const std::string& name, AllReduce reduce) {
        const auto blocks = on_all(in_blocks, Sum::running, reduce);
        bits.row(name, different(blocks[0], blocks[p - 1]), different(blocks[0], alone),
                 different(blocks[0], on_all(in_turn, Sum::running, reduce)[0]));
        return blocks[0];
    };
    const auto fast = compare("fast", AllReduce::fast),
               ordered = compare("rank_order", AllReduce::rank_order);
    note("The all-reduce 'fast' adds in MPI's order. The all-reduce 'rank_order' adds in the ranks' order.");
    note("In the column 'other order', the ranks take the micro-batches in turn, not in blocks.");
    // Each weight is a mean of 24 numbers below 1/2. Both sums round at most 24 times, both divisions once.
    check_close("fast: equal within a bound", fast, alone, roundings(2 * 24 + 2) / 2);
    check_close("rank_order: equal within a bound", ordered, alone, roundings(2 * 24 + 2) / 2);

    ask("a-lost-rank", "p", p);
    auto lost = table({"weights with other bits", "one process", "other order", "one rank less"});
    const auto lose_rank = [&](const std::string& name, Sum how) {
        const auto blocks = on_all(in_blocks, how, AllReduce::rank_order)[0];
        lost.row(name, different(blocks, update(all, how, nullptr)),
                 different(blocks, on_all(in_turn, how, AllReduce::rank_order)[0]),
                 different(blocks, on_all(in_turn_without_last, how, AllReduce::rank_order)[0]));
        return blocks;
    };
    lose_rank("Sum::running", Sum::running);
    const auto exact = lose_rank("Sum::exact", Sum::exact);  // rounds once, after the last micro-batch
    show("first weights, exact sums", std::vector(exact.begin(), exact.begin() + 3));
    check_equal("exact sums: the bits of one process", exact, update(all, Sum::exact, nullptr));

    ask("a-rank-fails", "last", p - 1);
    code(3);
    const auto finish_or_fail = [](auto& window, bool fails) {
        if (fails) throw Error("[read] the third file is missing");
        window.finish();
    };
    const auto errors = on_ranks([&](ProcessGroup& here) {  // adds two micro-batches first; returns a text
        return error_and_weights([&](auto& window) { finish_or_fail(window, here.rank() == p - 1); });
    });
    show("rank 0", errors[0], "last rank", errors[p - 1]);
    check("rank 0 knows which rank has left",
          errors[0].find(say("rank {} has left", p - 1)) != errors[0].npos);
}
