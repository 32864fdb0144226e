// BucketedAllReduce sums many arrays over all processes through a buffer of limited size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "tally/distributed/processes.hpp"

namespace tally::detail {

// An owner holds this by unique_ptr, and leaks it after a failed sum, because MPI may still write to it.
template <class T> struct Bucket {
    std::vector<T> numbers, scratch;

    void resize(std::size_t size, std::size_t ranks) {
        numbers.resize(size);
        scratch.resize(size + ranks);
    }
};

// add() appends an array to the bucket, which holds at least one number. finish() sums the bucket over all
// processes and copies it back; a full bucket is summed at once. Use this only right after an all_gather().
template <class T> class BucketedAllReduce {
public:
    // `others_get_error` becomes true if a sum fails, because the other processes then get an error as well.
    BucketedAllReduce(ProcessGroup& processes, ProcessGroup::AllReduce how,
                      std::unique_ptr<Bucket<T>>& bucket, bool& others_get_error)
        : processes_(processes), how_(how), bucket_(bucket), others_get_error_(others_get_error) {}

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
            others_get_error_ = true;
            (void)bucket_.release();  // MPI may still write there
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
        std::size_t offset, size;  // of its numbers in the bucket
    };

    ProcessGroup& processes_;
    ProcessGroup::AllReduce how_;
    std::unique_ptr<Bucket<T>>& bucket_;
    bool& others_get_error_;
    std::vector<Part> parts_;
    std::size_t filled_ = 0;
};

}  // namespace tally::detail
