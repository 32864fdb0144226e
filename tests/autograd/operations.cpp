// Instantiates all_operations() for float and double.
#include "autograd/operations.hpp"

namespace tally::test {

template std::vector<OperationCase<float>> all_operations<float>();
template std::vector<OperationCase<double>> all_operations<double>();

}  // namespace tally::test
