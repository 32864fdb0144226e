// A BucketedAllReduce sums many arrays over all processes by means of a buffer of limited size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "tally/distributed/processes.hpp"

namespace tally::detail {

// After a failed sum, the owner must not free the bucket, because MPI may still write to the bucket.
template <class T> struct Bucket {
    std::vector<T> numbers, scratch;

    void resize(std::size_t size, std::size_t ranks) {
        numbers.resize(size);
        scratch.resize(size + ranks);
    }
};

// add() appends an array, and sums the bucket when it is full. finish() sums the remaining numbers and copies
// the sums back. The capacity is at least one number. Call all_gather() before the first add().
template <class T> class BucketedAllReduce {
public:
    // Sets `must_not_report` if a sum fails, because other processes cannot receive a report then.
    BucketedAllReduce(ProcessGroup& processes, ProcessGroup::AllReduce how,
                      std::unique_ptr<Bucket<T>>& bucket, bool& must_not_report)
        : processes_(processes), how_(how), bucket_(bucket), must_not_report_(must_not_report) {}

    void add(T* data, std::size_t count, Device device) {
        while (count > 0) {
            const std::size_t size = std::min(count, bucket_->numbers.size() - filled_);
            detail::device_copy::bytes(bucket_->numbers.data() + filled_, Device::cpu, data, device,
                                       size * sizeof(T));
            parts_.push_back({data, device, filled_, size});
            data += size;
            count -= size;
            filled_ += size;
            if (filled_ == bucket_->numbers.size()) finish();
        }
    }

    void finish() {
        if (filled_ == 0) return;
        T* const numbers = bucket_->numbers.data();
        try {
            processes_.sum<T>(how_, {numbers, filled_}, bucket_->scratch);
        } catch (...) {
            must_not_report_ = true;
            (void)bucket_.release();  // MPI may still write to the bucket
            throw;
        }
        for (const Part& part : parts_)
            detail::device_copy::bytes(part.data, part.device, numbers + part.offset, Device::cpu,
                                       part.size * sizeof(T));
        parts_.clear();
        filled_ = 0;
    }

private:
    struct Part {
        T* data;
        Device device;
        std::size_t offset, size;  // of the array's numbers in the bucket
    };

    ProcessGroup& processes_;
    ProcessGroup::AllReduce how_;
    std::unique_ptr<Bucket<T>>& bucket_;
    bool& must_not_report_;
    std::vector<Part> parts_;
    std::size_t filled_ = 0;
};

}  // namespace tally::detail
